#include "workloads/workload.h"

namespace paceline {

namespace {

constexpr int kSide = 224, kClasses = 1000;

Network network_in(const std::string& variant) {
  return resnet50_without_top("resnet50-imagenet", {kSide, kSide, 3}, kClasses, variant)
      .dense(kClasses);
}

DatasetPair load(const std::filesystem::path& folder, const InputOptions& options) {
  return load_images(open_image_set(folder, options.reading), "train", "validation",
                     {kSide, kSide, 3}, options);
}

}  // namespace

Workload make_resnet50_imagenet() {
  return {.name = "resnet50-imagenet",
          .summary = "224x224 in 1000 classes, synthetic unless asked, ResNet-50 v1.5, Dense 1000",
          .network = network_in("v1.5"),
          .defaults = {{"variant", "v1.5"},
                       {"weights", "none"},
                       {"input", "synthetic"},
                       {"evaluate", "none"},
                       {"batch_per_replica", 32},
                       {"epochs", 1},
                       {"optimizer", "momentum"},
                       {"learning_rate", 0.0125},
                       {"learning_rate_rule", "linear"},
                       {"last_batch", "drop"}},
          .data_set = "imagenet",
          .train_samples = 1281167,
          .test_samples = 50000,
          .load = load,
          .hash = image_set_hash,
          .variant = network_in};
}

}  // namespace paceline

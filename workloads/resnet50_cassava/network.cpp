#include "workloads/workload.h"

namespace paceline {

namespace {

constexpr int kSide = 300, kClasses = 5;

Network network_in(const std::string& variant) {
  return resnet50_without_top("resnet50-cassava", {kSide, kSide, 3}, kClasses, variant)
      .dense(1016)
      .relu()
      .dense(kClasses);
}

DatasetPair load(const std::filesystem::path& folder, const InputOptions& options) {
  return load_images(open_image_set(folder, options.reading), "train", "test", {kSide, kSide, 3},
                     options);
}

}  // namespace

Workload make_resnet50_cassava() {
  return {.name = "resnet50-cassava",
          .summary = "Cassava leaves 300x300, ResNet-50, Dense 1016, Dense 5",
          .network = network_in("v1"),
          .defaults = {{"variant", "v1"},
                       {"weights", "imagenet"},
                       {"batch_per_replica", 32},
                       {"epochs", 15},
                       {"optimizer", "adam"},
                       {"learning_rate", 0.0001},
                       {"learning_rate_rule", "none"},
                       {"last_batch", "keep"},
                       {"shuffle_buffer", 1000}},
          .data_set = "cassava",
          .train_samples = 5656,
          .test_samples = 1885,
          .load = load,
          .hash = image_set_hash,
          .variant = network_in};
}

}  // namespace paceline

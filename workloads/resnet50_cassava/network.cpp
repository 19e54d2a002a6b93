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
  Workload workload{.name = "resnet50-cassava",
                    .summary = "Cassava leaves 300x300, ResNet-50, Dense 1016, Dense 5",
                    .network = network_in("v1"),
                    .defaults = {},
                    .data_set = "cassava",
                    .train_samples = 5656,
                    .test_samples = 1885,
                    .load = load,
                    .hash = image_set_hash,
                    .variant = network_in};
  workload.defaults.set("variant", std::string("v1"));
  workload.defaults.set("weights", std::string("imagenet"));
  workload.defaults.set("batch_per_replica", std::int64_t{32});
  workload.defaults.set("epochs", std::int64_t{15});
  workload.defaults.set("optimizer", std::string("adam"));
  workload.defaults.set("learning_rate", 0.0001);
  workload.defaults.set("learning_rate_rule", std::string("none"));
  workload.defaults.set("last_batch", std::string("keep"));
  workload.defaults.set("shuffle_buffer", std::int64_t{1000});
  return workload;
}

}  // namespace paceline

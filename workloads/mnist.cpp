#include "workloads/mnist.h"

namespace paceline {

namespace {

// The four IDX files, or any image set with splits train and test (TFDS's, for example).
DatasetPair load(const std::filesystem::path& folder, const InputOptions& options) {
  if (!is_image_set(folder)) return load_mnist(folder);
  return load_images(open_image_set(folder, options.reading), "train", "test", {28, 28, 1},
                     options);
}

std::string hash(const std::filesystem::path& folder) {
  return is_image_set(folder) ? image_set_hash(folder) : mnist_hash(folder);
}

}  // namespace

Workload mnist_workload(std::string name, std::string summary, Network network) {
  Workload workload{.name = std::move(name),
                    .summary = std::move(summary),
                    .network = std::move(network),
                    .defaults = {},
                    .data_set = "mnist",
                    .train_samples = 60000,
                    .test_samples = 10000,
                    .load = load,
                    .hash = hash};
  workload.defaults.set("batch_per_replica", std::int64_t{64});
  workload.defaults.set("optimizer", std::string("adam"));
  workload.defaults.set("learning_rate", 0.001);
  workload.defaults.set("learning_rate_rule", std::string("none"));
  workload.defaults.set("last_batch", std::string("keep"));
  return workload;
}

}  // namespace paceline

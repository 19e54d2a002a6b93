#include "workloads/mnist.h"

namespace paceline {

namespace {

// The four IDX files, or Keras' mnist.npz; else an image set with splits train and test (TFDS's,
// for example). ~/.keras/datasets may hold folders of images beside the archive.
bool has_mnist_files(const std::filesystem::path& folder) {
  return !mnist_files(folder).empty() || !is_image_set(folder);
}

DatasetPair load(const std::filesystem::path& folder, const InputOptions& options) {
  if (has_mnist_files(folder)) return load_mnist(folder);
  return load_images(open_image_set(folder, options.reading), "train", "test", {28, 28, 1},
                     options);
}

std::string hash(const std::filesystem::path& folder) {
  return has_mnist_files(folder) ? mnist_hash(folder) : image_set_hash(folder);
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

#include "workloads/workload.h"

namespace paceline {

namespace {

Network network_in(const std::string& variant) {
  return resnet50_without_top("resnet50-cifar10", {32, 32, 3}, 10, variant).dense(10);
}

}  // namespace

Workload make_resnet50_cifar10() {
  return {.name = "resnet50-cifar10",
          .summary = "CIFAR-10 32x32, ResNet-50, Dense 10",
          .network = network_in("v1"),
          .defaults = {{"variant", "v1"},
                       {"weights", "none"},
                       {"batch_per_replica", 64},
                       {"epochs", 10},
                       {"steps_per_epoch", "100"},
                       {"optimizer", "sgd"},
                       {"learning_rate", 0.001},
                       {"learning_rate_rule", "linear"},
                       {"last_batch", "drop"}},
          .data_set = "cifar10",
          .train_samples = 50000,
          .test_samples = 10000,
          .load = [](const std::filesystem::path& folder,
                     const InputOptions&) { return load_cifar10(folder); },
          .hash = image_set_hash,
          .variant = network_in};
}

}  // namespace paceline

#include "workloads/workload.h"

namespace paceline {

namespace {

Network network_in(const std::string& variant) {
  return resnet50_without_top("resnet50-cifar10", {32, 32, 3}, 10, variant).dense(10);
}

}  // namespace

Workload make_resnet50_cifar10() {
  Workload workload{.name = "resnet50-cifar10",
                    .summary = "CIFAR-10 32x32, ResNet-50, Dense 10",
                    .network = network_in("v1"),
                    .defaults = {},
                    .data_set = "cifar10",
                    .train_samples = 50000,
                    .test_samples = 10000,
                    .load = [](const std::filesystem::path& folder,
                               const InputOptions&) { return load_cifar10(folder); },
                    .hash = image_set_hash,
                    .variant = network_in};
  workload.defaults.set("variant", std::string("v1"));
  workload.defaults.set("weights", std::string("none"));
  workload.defaults.set("batch_per_replica", std::int64_t{64});
  workload.defaults.set("epochs", std::int64_t{10});
  workload.defaults.set("steps_per_epoch", std::string("100"));
  workload.defaults.set("optimizer", std::string("sgd"));
  workload.defaults.set("learning_rate", 0.001);
  workload.defaults.set("learning_rate_rule", std::string("linear"));
  workload.defaults.set("last_batch", std::string("drop"));
  return workload;
}

}  // namespace paceline

#include "workloads/workload.h"

namespace paceline {

namespace {

Network network_in(const std::string& variant) {
  return resnet50_without_top("resnet50-imagenet", {224, 224, 3}, 1000, variant).dense(1000);
}

}  // namespace

Workload make_resnet50_imagenet() {
  return {.name = "resnet50-imagenet",
          .summary = "synthetic 224x224 in 1000 classes, ResNet-50 v1.5, Dense 1000",
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
          .data_set = "",
          .train_samples = 1281167,
          .test_samples = 50000,
          .load = {},
          .hash = {},
          .variant = network_in};
}

}  // namespace paceline

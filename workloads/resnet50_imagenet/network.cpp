#include "workloads/workload.h"

namespace paceline {

namespace {

Network network_in(const std::string& variant) {
  return resnet50_without_top("resnet50-imagenet", {224, 224, 3}, 1000, variant).dense(1000);
}

}  // namespace

Workload make_resnet50_imagenet() {
  Workload workload{.name = "resnet50-imagenet",
                    .summary = "synthetic 224x224 in 1000 classes, ResNet-50 v1.5, Dense 1000",
                    .network = network_in("v1.5"),
                    .defaults = {},
                    .data_set = "",
                    .train_samples = 1281167,
                    .test_samples = 50000,
                    .load = {},
                    .hash = {},
                    .variant = network_in};
  workload.defaults.set("variant", std::string("v1.5"));
  workload.defaults.set("weights", std::string("none"));
  workload.defaults.set("input", std::string("synthetic"));
  workload.defaults.set("evaluate", std::string("none"));
  workload.defaults.set("batch_per_replica", std::int64_t{32});
  workload.defaults.set("epochs", std::int64_t{1});
  workload.defaults.set("optimizer", std::string("momentum"));
  workload.defaults.set("learning_rate", 0.0125);
  workload.defaults.set("learning_rate_rule", std::string("linear"));
  workload.defaults.set("last_batch", std::string("drop"));
  return workload;
}

}  // namespace paceline

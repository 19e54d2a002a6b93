#include "workloads/mnist.h"

namespace paceline {

Workload mnist_workload(std::string name, std::string summary, Network network) {
  Workload workload{std::move(name), std::move(summary), std::move(network), {}, "mnist", 60000,
                    10000,           load_mnist,         mnist_hash};
  workload.defaults.set("batch_per_replica", std::int64_t{64});
  workload.defaults.set("optimizer", std::string("adam"));
  workload.defaults.set("learning_rate", 0.001);
  workload.defaults.set("learning_rate_rule", std::string("none"));
  workload.defaults.set("last_batch", std::string("keep"));
  return workload;
}

}  // namespace paceline

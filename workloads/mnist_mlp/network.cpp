#include "workloads/workload.h"

namespace paceline {

Workload make_mnist_mlp() {
  Network network("mnist-mlp", {28, 28, 1}, 10);
  network.flatten().dense(512).relu().dropout(0.2).dense(10);
  return mnist_workload("mnist-mlp", "MNIST, one hidden layer: Dense 512, Dropout 0.2, Dense 10",
                        std::move(network));
}

}  // namespace paceline

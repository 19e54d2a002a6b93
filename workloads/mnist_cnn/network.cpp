#include "workloads/workload.h"

namespace paceline {

Workload make_mnist_cnn() {
  Network network("mnist-cnn", {28, 28, 1}, 10);
  network.conv(32, 3).relu().max_pool(2).flatten().dense(64).relu().dense(10);
  return mnist_workload("mnist-cnn", "MNIST, Conv 32 3x3, MaxPool 2, Dense 64, Dense 10",
                        std::move(network));
}

}  // namespace paceline

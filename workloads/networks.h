// What workloads share: the data sets, networks and defaults of MNIST and of ResNet-50.
#pragma once

#include <string>

#include "engine/plan/network.h"
#include "workloads/workload.h"

namespace paceline {

// Shared by the MNIST workloads: the data set and the guides' defaults.

// Adam with rate 0.001 (not scaled), batch 64 per replica, incomplete last batch kept.
Workload mnist_workload(std::string name, std::string summary, Network network);

// ResNet-50 in the topology and with the layer names of Keras' applications, so that its weight
// files fit: biased convolutions, batch_norm with epsilon 1.001e-5 and momentum 0.99, 7 x 7 / 2
// stem with padding 3, 3 x 3 / 2 max pooling with padding 1. He et al., arXiv 1512.03385.

// All stages and global average pooling; the caller adds the head. `variant` selects where the
// first block of a stage strides: v1 in its first 1 x 1, as in the paper and in Keras; v1.5 in its
// 3 x 3, as in torchvision. Throws usage for others.
Network resnet50_without_top(const std::string& name, Shape sample, int classes,
                             const std::string& variant);

}  // namespace paceline

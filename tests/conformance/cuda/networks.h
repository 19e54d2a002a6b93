// What a GPU has kernels for that smaller networks do not ask for: heads and blocks of ResNets.
#pragma once

#include "engine/plan/network.h"

namespace paceline::conformance {

// A stem, an identity block and one that goes down. ReLU lets a few elements next to zero pass that
// the reference stops, or the other way round: that moves gradients by more than rounding does.
inline Network small_resnet(bool relu = true) {
  Network n("small_resnet", {21, 19, 3}, 5);
  const auto unit = [&](int filters, int kernel, int stride) {
    n.conv(filters, kernel, stride, kernel / 2).batch_norm(1e-5, 0.9);
  };
  const auto block = [&](int filters, int stride, bool branch) {
    const int in = n.last();
    int skip = in;
    if (branch) {
      unit(2 * filters, 1, stride);
      skip = n.last();
      n.from(in);
    }
    unit(filters, 1, stride);
    unit(filters, 3, 1);
    unit(2 * filters, 1, 1);
    n.add(skip);
  };
  unit(8, 7, 2);
  if (relu) n.relu();
  n.max_pool(3, 2, 1);
  block(8, 1, true);
  block(8, 1, false);
  block(16, 2, true);
  n.global_average_pool().dense(16).dropout(0.25).dense(5);
  return n;
}

}  // namespace paceline::conformance

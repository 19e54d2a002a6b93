// Converts a convolution of a plan to the library's request, for the program and for checks against
// described cards.
#pragma once

#include "engine/device/cuda/products.h"
#include "engine/plan/plan.h"

namespace paceline::cuda {

// With `batch` samples. Pads the channels of the sample itself.
inline ConvShape conv_shape(const Operation& operation, int batch, Math math) {
  ConvShape shape;
  shape.batch = batch;
  shape.height = operation.in.height;
  shape.width = operation.in.width;
  shape.in =
      operation.from == 0 ? padded_channels(math, operation.in.channels) : operation.in.channels;
  shape.out = operation.out.channels;
  shape.kernel = operation.kernel;
  shape.stride = operation.stride;
  shape.padding = operation.padding;
  shape.math = math;
  return shape;
}

}  // namespace paceline::cuda

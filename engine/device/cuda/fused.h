// Convolutions with what batch normalization needs beside them, as one kernel that cuDNN compiles
// at run time: the planes are read or written once less. Backward kinds are not there for
// convolutions that stride.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "engine/device/cuda/products.h"

namespace paceline::cuda {

enum class FusedKind {
  // y = x w; sums of y and of y^2, per channel of y.
  forward_sums,
  // y = relu(scale x + shift) w; the same sums. x is what the normalization before read.
  normalized_forward_sums,
  // x = gradient of a normalization's output behind its ReLU: where scale z + shift > 0 the
  // gradient of the convolution's input, else 0. z is what that normalization read; sums of x and
  // of x z, per channel of x.
  backward_relu_sums,
  // The same by a mask that is 1 where the gradient passes: element e, channels fastest, is bit
  // e % 8 of byte e / 8.
  backward_mask_sums,
};

struct FusedRequest {
  ConvShape shape;
  FusedKind kind = FusedKind::forward_sums;
  bool adds_branch = false;        // backward: plus another gradient, before the ReLU's
  bool stores_activation = false;  // backward_relu_sums: relu(scale z + shift) is written too

  friend bool operator==(const FusedRequest&, const FusedRequest&) = default;
};

// x, w, y, z, branch and activation are of type stored_as(math), the last three in x's shape; per
// channel, scale, shift and sums are fp32. Null where a request has no use for it.
struct FusedOperands {
  void *x = nullptr, *w = nullptr, *y = nullptr;
  void *scale = nullptr, *shift = nullptr;
  void *z = nullptr, *mask = nullptr, *branch = nullptr, *activation = nullptr;
  void *sum = nullptr, *sum_of_products = nullptr;
  void* workspace = nullptr;
};

class FusedPlan {
 public:
  virtual ~FusedPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void run(const FusedOperands& operands, Stream stream) = 0;
  virtual std::string implementation() const = 0;
};

// What a fused convolution is weighed against, as work that is queued with a request's operands.
// `sum` and `sum_of_products` may be written as anything.
struct FusedBaseline {
  using Work = std::function<void(const FusedOperands&, Stream)>;
  Work apart;   // the same by a convolution and passes of its own
  Work behind;  // what is needed behind the fused one, and not behind that
};

std::string text_of(const FusedRequest& request);  // distinct for distinct requests

}  // namespace paceline::cuda

// Convolutions fused with work of batch normalization, as one kernel that cuDNN compiles at run
// time. This reads or writes the planes once less. Backward kinds do not support strided
// convolutions.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "engine/device/cuda/products.h"

namespace paceline::cuda {

enum class FusedKind {
  // y = x w; sums of y and of y^2, per channel of y.
  forward_sums,
  // y = relu(scale x + shift) w; the same sums. x is the input of the previous normalization.
  normalized_forward_sums,
  // x = gradient of a normalization's output behind its ReLU: the gradient of the convolution's
  // input where scale z + shift > 0, else 0. z is the input of that normalization. Sums of x and of
  // x z, per channel of x.
  backward_relu_sums,
  // The same with a mask, 1 where the gradient passes: element e, channels innermost, is bit e % 8
  // of byte e / 8.
  backward_mask_sums,
};

struct FusedRequest {
  ConvShape shape;
  FusedKind kind = FusedKind::forward_sums;
  bool adds_branch = false;        // backward: adds another gradient before the ReLU's
  bool stores_activation = false;  // backward_relu_sums: also writes relu(scale z + shift)

  friend bool operator==(const FusedRequest&, const FusedRequest&) = default;
};

// x, w, y, z, branch and activation have type stored_as(math), the last three in x's shape. scale,
// shift and sums are fp32, per channel. Null if the request does not use it.
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

// The unfused alternative of a fused convolution, as work on the same operands. It may overwrite
// `sum` and `sum_of_products`.
struct FusedBaseline {
  using Work = std::function<void(const FusedOperands&, Stream)>;
  Work apart;   // the same result with a separate convolution and passes
  Work behind;  // work that only the fused version needs afterwards
};

std::string to_text(const FusedRequest& request);  // distinct for distinct requests

}  // namespace paceline::cuda

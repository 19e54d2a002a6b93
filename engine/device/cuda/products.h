// The interface of libraries for convolutions and matrix products: plans that are made once and
// queue on a stream. Implemented by cuDNN and cuBLASLt on a card, and on the host in tests.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/dtype.h"

namespace paceline::cuda {

// How factors are stored and multiplied. Sums are always fp32. tf32 is stored as fp32. fp32 never
// uses tensor cores.
enum class Math { fp32, tf32, bf16, fp16 };

constexpr DType stored_as(Math math) {
  return math == Math::bf16 ? DType::bf16 : math == Math::fp16 ? DType::f16 : DType::f32;
}

// Channels of a plane including zero padding: the libraries' fast kernels read 16 bytes at a time
// (8 values of 16 bits, 4 of 32).
constexpr int padded_channels(Math math, int channels) {
  const int block = stored_as(math) == DType::f32 ? 4 : 8;
  return (channels + block - 1) / block * block;
}

using Stream = void*;  // cudaStream_t

// x: batch, height, width, in. w: out, kernel, kernel, in. y: batch, (height + 2 padding - kernel)
// / stride + 1 and likewise for the width, out. Dense, with the last dimension contiguous.
struct ConvShape {
  int batch = 0, height = 0, width = 0, in = 0, out = 0;
  int kernel = 1, stride = 1, padding = 0;
  Math math = Math::fp32;

  int out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  friend bool operator==(const ConvShape&, const ConvShape&) = default;
};

enum class ConvPass {
  forward,          // y = x * w
  backward_data,    // x = gradient of x, from y's and w
  backward_weights  // w = gradient of w, from x and y's
};

struct ConvRequest {
  ConvShape shape;
  ConvPass pass = ConvPass::forward;
  bool accumulates = false;  // adds to the result; backward_data only

  friend bool operator==(const ConvRequest&, const ConvRequest&) = default;
};

// All elements have type stored_as(math) and 16-byte alignment. Inputs of a pass are not written.
struct ConvOperands {
  void *x = nullptr, *w = nullptr, *y = nullptr;
  void* workspace = nullptr;
};

class ConvPlan {
 public:
  virtual ~ConvPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void run(const ConvOperands& operands, Stream stream) = 0;
  virtual std::string implementation() const = 0;  // "cuDNN 9.19 engine 47, 12 MB of workspace"
};

// Additional work of a product, with a vector of n values.
enum class Epilogue {
  none,
  bias,          // adds it to every row of `out`
  bias_relu,     // also applies ReLU
  bias_gradient  // writes the sum of the rows of `right`
};

// out (m x n) = left (m x k) right (k x n), row-major, fp32 in memory. A transposed factor is
// stored as k x m or n x k.
struct MatmulShape {
  int m = 0, k = 0, n = 0;
  bool left_transposed = false, right_transposed = false;
  bool accumulates = false;  // adds to `out`
  Math math = Math::fp32;    // fp32 or tf32
  Epilogue epilogue = Epilogue::none;
};

struct MatmulOperands {
  const float *left = nullptr, *right = nullptr;
  float* out = nullptr;
  void* workspace = nullptr;
  float* bias = nullptr;  // for the epilogue
};

class MatmulPlan {
 public:
  virtual ~MatmulPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void run(const MatmulOperands& operands, Stream stream) = 0;
  virtual std::string implementation() const = 0;
};

struct FusedRequest;  // declared in fused.h
struct FusedBaseline;
class FusedPlan;

class Products {
 public:
  virtual ~Products() = default;
  // Throw usage if the library offers nothing for it.
  virtual std::unique_ptr<ConvPlan> conv(const ConvRequest& request) = 0;
  virtual std::unique_ptr<MatmulPlan> matmul(const MatmulShape& shape) = 0;
  // Announces later requests to fused(), so that slow compilation can start on several threads.
  virtual void announce(const std::vector<FusedRequest>& requests) = 0;
  // Null unless it was measured to be faster than its baseline: it may be slower, not offered, not
  // measured, or excluded because the order of its sums varies.
  virtual std::unique_ptr<FusedPlan> fused(const FusedRequest& request,
                                           const FusedBaseline& baseline) = 0;
  virtual std::string description() const = 0;  // "cuDNN 9.19.0, cuBLASLt 13.0.2"
};

}  // namespace paceline::cuda

// The interface of libraries for convolutions and matrix products: plans that are made once and
// queue on a stream. Implemented by cuDNN and cuBLASLt on a card, and on the host in tests.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/plan/plan.h"

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

// Additional work of a product, with a vector of n values, or of m.
enum class Epilogue {
  none,
  bias,           // adds it to every row of `out`
  bias_relu,      // also applies ReLU
  bias_gradient,  // writes the sum of the rows of `right`
  left_gradient,  // writes the sums over k of `left`: m values
  bias_add,       // also adds `before`, which lies like `out`
  bias_gelu,      // writes what `bias` gives to `before`, and applies GELU (kernels/tokens.h)
  gelu_gradient   // without a vector: multiplies by GELU's slope at `before`
};

constexpr bool has_vector(Epilogue epilogue) {
  return epilogue != Epilogue::none && epilogue != Epilogue::gelu_gradient;
}
constexpr bool writes_vector(Epilogue epilogue) {
  return epilogue == Epilogue::bias_gradient || epilogue == Epilogue::left_gradient;
}
constexpr bool has_gelu(Epilogue epilogue) {
  return epilogue == Epilogue::bias_gelu || epilogue == Epilogue::gelu_gradient;
}
constexpr bool has_before(Epilogue epilogue) {
  return has_gelu(epilogue) || epilogue == Epilogue::bias_add;
}

// A window of one pixel: a matrix product.
constexpr bool is_plain_product(const ConvShape& shape) {
  return shape.kernel == 1 && shape.stride == 1 && shape.padding == 0;
}

struct ConvRequest {
  ConvShape shape;
  ConvPass pass = ConvPass::forward;
  bool accumulates = false;  // adds to the result; backward_data only
  // Only of plain products; the result is the `out` of Epilogue. forward: bias, bias_add,
  // bias_gelu; backward_data: gelu_gradient; backward_weights: left_gradient, of `y`.
  Epilogue epilogue = Epilogue::none;

  friend bool operator==(const ConvRequest&, const ConvRequest&) = default;
};

// All elements have type stored_as(math) and 16-byte alignment. Inputs of a pass are not written.
struct ConvOperands {
  void *x = nullptr, *w = nullptr, *y = nullptr;
  void* workspace = nullptr;
  void *bias = nullptr, *before = nullptr;  // for the epilogue
};

// What was chosen for a product.
class ProductPlan {
 public:
  virtual ~ProductPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual std::string implementation() const = 0;  // "cuDNN 9.19 engine 47, 12 MB of workspace"
  virtual double seconds() const { return 0; }     // as measured for the choice; 0: not measured
};
template <typename Addresses>
class PlanOf : public ProductPlan {
 public:
  virtual void run(const Addresses& operands, Stream stream) = 0;
};

using ConvPlan = PlanOf<ConvOperands>;

// The product of a request without its epilogue, and kernels that do the rest.
struct ConvApart {
  std::function<void(const ConvOperands&, Stream)> run;
  std::size_t workspace_bytes = 0;
  std::string product;  // its implementation()
};

// out (m x n) = left (m x k) right (k x n), row-major, fp32 in memory. A transposed factor is
// stored as k x m or n x k.
struct MatmulShape {
  int m = 0, k = 0, n = 0;
  bool left_transposed = false, right_transposed = false;
  bool accumulates = false;            // adds to `out`
  Math math = Math::fp32;              // matmul(): fp32 or tf32
  Epilogue epilogue = Epilogue::none;  // matmul(): not those with `before`
};

struct MatmulOperands {
  const float *left = nullptr, *right = nullptr;
  float* out = nullptr;
  void* workspace = nullptr;
  float* bias = nullptr;  // for the epilogue
};

using MatmulPlan = PlanOf<MatmulOperands>;

// Causal attention. Sums are fp32.

struct AttentionRequest {
  int samples = 0, places = 0, heads = 0;
  int width = 0;  // of a head
  Math math = Math::fp32;
  bool backward = false;
  bool accumulates = false;  // backward: adds to the gradient

  friend bool operator==(const AttentionRequest&, const AttentionRequest&) = default;
};

// qkv: samples, places, 3 (queries, keys, values), heads, width. out: samples, places, heads,
// width. Both have type stored_as(math), and so have their gradients. sums: the logarithm of a
// row's sum of exponentials, and products: out times its gradient; samples, heads, places, fp32.
// Forward writes out and sums, backward products and the gradient of qkv.
struct AttentionOperands {
  void *qkv = nullptr, *out = nullptr, *sums = nullptr;
  void *out_gradient = nullptr, *products = nullptr, *qkv_gradient = nullptr;
  void* workspace = nullptr;
};

using AttentionWork = std::function<void(const AttentionOperands&, Stream)>;

using AttentionPlan = PlanOf<AttentionOperands>;

// The addresses of a product's tensors, in the order of its kind: usually two factors and the
// result.
constexpr std::size_t kMostTensors = 14;
struct Operands {
  std::array<void*, kMostTensors> tensors{};
  void* workspace = nullptr;
  friend auto operator<=>(const Operands&, const Operands&) = default;
};

// A product's tensor, in the order of Operands.
struct TensorSize {
  enum class Use { read, written, added_to };

  std::size_t elements = 0;
  DType type = DType::f32;
  Use use = Use::read;

  std::size_t bytes() const { return elements * size_of(type); }
};

// Kernels of ours that compute the same in several ways. The first is the one to compare with.
struct OwnWays {
  std::string name;  // of the work, with its sizes
  std::vector<TensorSize> sizes;
  Math math = Math::fp32;  // of its values
  std::size_t terms = 0;   // that are summed into an element of a result
  std::size_t ways = 0;
  std::function<void(std::size_t way, const Operands&, Stream)> run;
};

class Products {
 public:
  virtual ~Products() = default;
  // Throw usage if the library offers nothing for it. Of epilogues, conv() has left_gradient alone.
  virtual std::unique_ptr<ConvPlan> conv(const ConvRequest& request) = 0;
  // The fastest of the library's epilogues and `apart`, whose results must agree. What `apart`
  // refers to must outlive this and the plan.
  virtual std::unique_ptr<ConvPlan> conv_with(const ConvRequest& request, ConvApart apart) = 0;
  virtual std::unique_ptr<MatmulPlan> matmul(const MatmulShape& shape) = 0;
  // The fastest of the library's ways and `own`, whose results must agree. What `own` refers to
  // must outlive this and the plan.
  virtual std::unique_ptr<AttentionPlan> attention(const AttentionRequest& request,
                                                   AttentionWork own) = 0;
  // Which is the fastest; 0 where nothing is measured. `own` does not run after the call.
  virtual std::size_t own_way(const OwnWays& own) = 0;
  virtual std::string description() const = 0;  // "cuDNN 9.19.0, cuBLASLt 13.0.2"
};

std::string to_text(const AttentionRequest& request);

// Converts a convolution of a plan to the library's request, for the program and for checks against
// described cards.

// A dense layer of places is one of 1 x 1.
inline bool is_product_of_places(const Operation& operation) {
  return operation.kind == OpKind::conv ||
         (operation.kind == OpKind::dense && operation.in.height > 1);
}

// With `batch` samples. Pads the channels of the sample itself.
inline ConvShape conv_shape(const Operation& operation, int batch, Math math) {
  const bool reads_sample = operation.kind == OpKind::conv && operation.from == 0;
  const int channels = operation.in.channels;
  return {.batch = batch,
          .height = operation.in.height,
          .width = operation.in.width,
          .in = reads_sample ? padded_channels(math, channels) : channels,
          .out = operation.out.channels,
          .kernel = std::max(operation.kernel, 1),
          .stride = operation.stride,
          .padding = operation.padding,
          .math = math};
}

// The same convolution of 2 x 2 pixels as one place with four times the sample's channels, which
// the padding surrounds (FoldInput). nullopt: not of stride 2, or channels that hardly need it.
// cuDNN has fast kernels for it, and none for a 16-bit plane of 4 channels.
inline std::optional<ConvShape> fold_shape(const ConvShape& plain, int channels) {
  constexpr int kMostChannels = 4;
  if (plain.stride != 2 || channels > kMostChannels) return std::nullopt;
  ConvShape folded = plain;
  folded.kernel = (plain.kernel + 1) / 2;
  folded.stride = 1;
  folded.padding = 0;
  folded.height = plain.out_height() + folded.kernel - 1;
  folded.width = plain.out_width() + folded.kernel - 1;
  folded.in = padded_channels(plain.math, 4 * channels);
  return folded;
}

// Of our kernels that compete, with a library's or with each other: attention, what stands apart
// from a product's epilogue, and OwnWays. A faster one gets another number, so that choices against
// the last one are made anew.
constexpr int kOwnKernels = 1;
inline std::string with_own_kernels(std::string request) {
  return kOwnKernels == 1 ? request : request + ", own kernels " + std::to_string(kOwnKernels);
}

// Of the logits of a loss of tokens, in pieces of so many rows; the last piece may have fewer.
// `free_bytes` of the device: a piece takes a quarter of them, unless that is less than some rows.
constexpr std::size_t kMostLogitRows = 8192;
inline std::size_t logit_rows(std::size_t labels, std::size_t row_bytes, std::size_t free_bytes,
                              std::size_t most = kMostLogitRows) {
  constexpr std::size_t kFew = 256;
  while (most > kFew && most * row_bytes > free_bytes / 4) most /= 2;
  const std::size_t even = piece_rows(labels, most);
  return 2 * even >= std::min(most, labels) ? even : most;
}
inline ConvShape logits_shape(const Operation& operation, std::size_t rows, Math math) {
  return {.batch = 1,
          .height = static_cast<int>(rows),
          .width = 1,
          .in = operation.in.channels,
          .out = operation.out.channels,
          .math = math};
}

}  // namespace paceline::cuda

// One convolution of a program: which kernels (oneDNN's or Paceline's) in which layouts.
//
// A 1x1 convolution of stride 2 reads a quarter of its input. For oneDNN's kernels, those places
// are first gathered into a compact plane, and the gradient is scattered back. The kernels then see
// stride 1, which is twice as fast.
//
// 3x3 convolutions of stride 1 use Paceline's Winograd loops. In bf16, 1x1 convolutions use
// Paceline's loops, too, which accumulate into a gradient and compute the sums of an adjacent
// batch_norm in the same pass. If products of bf16 are best by matrix tiles (Bf16Products), oneDNN
// runs all convolutions in bf16.
#pragma once

#include <optional>
#include <string>

#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/library.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/pointwise.h"
#include "engine/device/cpu/weight_gradient.h"
#include "engine/device/cpu/winograd.h"
#include "engine/device/cpu/winograd_fp32.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

class Conv {
 public:
  Conv(const Operation& operation, const LibraryKernel::Planes& planes, const Kernels& kernels,
       const Parallel& parallel);

  // Planes hold the whole batch. Weights, bias and their gradients are in canonical order.
  struct Forward {
    const void* x;
    const float *w, *b;
    void* y;
    ChannelSums* sums;  // of y over the first `samples`, computed if sums_output(); may be null
    std::size_t samples;
  };
  void forward(const Forward& work, std::byte* scratch);
  bool sums_output() const { return pointwise_forward_.has_value(); }

  struct Backward {
    const void *x, *dy;
    const float* w;
    void* dx;  // null: not needed
    float *dw, *db;
    const GradientSums* sums;  // of dx, computed if sums_gradient(); may be null
  };
  bool sums_gradient() const { return pointwise_data_ && op_.stride == 1; }
  void backward(const Backward& work, std::byte* scratch);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::string implementation() const;
  std::vector<std::string> library_kernels() const;

 private:
  bool bf16_rows() const;
  bool winograd_fits() const;
  bool winograd_fp32_fits() const;
  bool pointwise_fits() const;
  void choose_forward(const LibraryKernel::Planes& planes);
  void choose_backward_weights(const LibraryKernel::Planes& planes);
  void choose_backward_data(const LibraryKernel::Planes& planes);
  void backward_weights(const Backward& work, std::byte* scratch);
  void backward_data(const Backward& work, std::byte* scratch);
  std::size_t input_bytes() const;  // of the kernels' input
  Window window() const;
  template <typename Visit>
  void over_images(const Window& window, Visit visit) const;
  template <typename T>
  void gather(const void* x, void* y) const;
  template <typename T>
  void scatter(const void* dy, void* dx) const;
  template <typename T>
  void add(const void* part, void* sum) const;

  const Operation& op_;
  const Kernels& kernels_;
  const Parallel& parallel_;
  LibraryKernel::Planes planes_;
  bool compact_;     // gathers places first
  Operation inner_;  // the operation that the kernels run
  LibraryKernel forward_, data_, weights_;
  std::optional<Winograd> winograd_forward_, winograd_data_;
  std::optional<WinogradGradient> winograd_weights_;
  std::optional<WinogradFp32> fp32_forward_, fp32_data_;
  std::optional<WinogradFp32Gradient> fp32_weights_;
  std::optional<Pointwise> pointwise_forward_, pointwise_data_;
  std::optional<WeightGradient> own_weights_;
  bool as_product_ = false;  // backward weights is one matrix product of oneDNN
  bool sums_ = false;        // data_ accumulates into dx itself
  std::size_t scratch_bytes_ = 0;
};

// The fusion with a loop of its own: 3x3 convolution of a one-channel sample, ReLU and 2x2 max
// pooling.

inline bool is_stem(const Operation& op) {
  return op.kind == OpKind::conv && op.from == 0 && op.relu && op.pool == 2 &&
         op.in.channels == 1 && op.kernel == 3 && op.stride == 1 && op.padding == 0 &&
         op.out.channels % 16 == 0 && op.in.height % 2 == 0 && op.in.width % 2 == 0;
}

}  // namespace paceline::cpu

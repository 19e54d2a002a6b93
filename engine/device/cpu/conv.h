// One convolution of a program: which kernels, of oneDNN's or ours, in which layouts.
//
// A 1x1 convolution of stride 2 reads a quarter of its input. For oneDNN's kernels those places are
// gathered into a compact plane first, and its gradient is scattered back: they then see stride 1,
// where they run at twice the rate.
//
// In bf16, where the library has no matrix tiles, 3x3 convolutions are Winograd's (in fp32 oneDNN
// makes that choice itself), and 1x1 ones loops of ours, which add to a gradient and take the sums
// of the batch_norm behind or before them on the way.
#pragma once

#include <optional>
#include <string>

#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/library.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/pointwise.h"
#include "engine/device/cpu/weight_gradient.h"
#include "engine/device/cpu/winograd.h"

namespace paceline::cpu {

class Conv {
 public:
  Conv(const Operation& operation, const LibraryKernel::Planes& planes, const Kernels& kernels,
       const Parallel& parallel);

  // Planes are of the whole batch; weights, bias and their gradients in canonical order.
  struct Forward {
    const void* x;
    const float *w, *b;
    void* y;
    ChannelSums* sums;  // of y over the first `samples`, taken if sums_output(); or null
    std::size_t samples;
  };
  void forward(const Forward& work, std::byte* scratch);
  bool sums_output() const { return pointwise_forward_.has_value(); }

  struct Backward {
    const void *x, *dy;
    const float* w;
    void* dx;  // null: nobody needs it
    float *dw, *db;
    const GradientSums* sums;  // of dx, taken if sums_gradient(); or null
  };
  bool sums_gradient() const { return pointwise_data_ && op_.stride == 1; }
  void backward(const Backward& work, std::byte* scratch);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::string implementation() const;
  std::vector<std::string> library_kernels() const;

 private:
  bool bf16_rows() const;
  bool winograd_fits() const;
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
  bool compact_;     // places are gathered first
  Operation inner_;  // what the kernels see
  LibraryKernel forward_, data_, weights_;
  std::optional<Winograd> winograd_forward_, winograd_data_;
  std::optional<WinogradGradient> winograd_weights_;
  std::optional<Pointwise> pointwise_forward_, pointwise_data_;
  std::optional<WeightGradient> own_weights_;
  bool as_product_ = false;  // backward weights is one matrix product of oneDNN's
  bool sums_ = false;        // data_ adds to dx itself
  std::size_t scratch_bytes_ = 0;
};

}  // namespace paceline::cpu

// One convolution of a program: which kernels, of oneDNN's or ours, in which layouts.
//
// A 1x1 convolution of stride 2 reads a quarter of its input. Those places are gathered into a
// compact plane first, and its gradient is scattered back: the kernels then see stride 1, where
// they run at twice the rate.
#pragma once

#include <optional>
#include <string>

#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/library.h"
#include "engine/device/cpu/parallel.h"
#include "engine/device/cpu/weight_gradient.h"

namespace paceline::cpu {

class Conv {
 public:
  Conv(const Operation& operation, const LibraryKernel::Planes& planes, const Kernels& kernels,
       const Parallel& parallel);

  // Planes are of the whole batch; weights, bias and their gradients in canonical order.
  void forward(const void* x, const float* w, const float* b, void* y, std::byte* scratch);

  struct Backward {
    const void *x, *dy;
    const float* w;
    void* dx;  // null: nobody needs it
    float *dw, *db;
  };
  void backward(const Backward& work, std::byte* scratch);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::string implementation() const;

 private:
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
  std::optional<WeightGradient> own_weights_;
  bool as_product_ = false;  // backward weights is one matrix product of oneDNN's
  bool sums_ = false;        // data_ adds to dx itself
  std::size_t scratch_bytes_ = 0;
};

}  // namespace paceline::cpu

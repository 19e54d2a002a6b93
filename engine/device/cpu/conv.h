// One convolution of a program, by oneDNN: which of its kernels, in which layouts.
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
  void backward_data(const Backward& work, std::byte* scratch);
  std::size_t input_bytes() const;

  const Operation& op_;
  const Kernels& kernels_;
  const Parallel& parallel_;
  DType type_;
  std::size_t batch_;
  LibraryKernel forward_, data_, weights_;
  std::optional<WeightGradient> own_weights_;
  bool as_product_ = false;  // backward weights is one matrix product of oneDNN's
  bool sums_ = false;        // data_ adds to dx itself
  std::size_t scratch_bytes_ = 0;
};

}  // namespace paceline::cpu

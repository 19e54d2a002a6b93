// oneDNN, wrapped so that its headers stay in this folder and its memory is ours: nothing is
// allocated when a primitive runs, and all kernels of a program share one scratch area.
#pragma once

#include <memory>
#include <string>

#include "engine/core/memory.h"
#include "engine/device/cpu/layout.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

std::string library_version();  // "oneDNN 2.6.3"
bool library_has_avx512();      // its fp32 kernels use AVX-512 here
bool library_has_amx();         // its bf16 kernels use matrix tiles here

// A kernel of oneDNN with its operands' addresses left open. Made on the thread that runs it,
// after the number of threads is set. Factories throw usage if, on x86-64, only oneDNN's reference
// code would run it (reference_code.h).
class LibraryKernel {
 public:
  LibraryKernel();
  ~LibraryKernel();
  LibraryKernel(LibraryKernel&&) noexcept;
  LibraryKernel& operator=(LibraryKernel&&) noexcept;
  explicit operator bool() const { return state_ != nullptr; }

  // out[m x n] = left[m x k] right[k x n], row-major; a transposed operand is stored the other way
  // round. `type` of left and right; out is fp32.
  static LibraryKernel matmul(int m, int k, int n, bool transpose_left, bool transpose_right,
                              DType type = DType::f32);

  // The planes of a convolution; weights and their gradient are fp32 in canonical order (rows,
  // columns, in, out), bias and its gradient fp32.
  struct Planes {
    DType type = DType::f32;
    Layout x = Layout::nhwc, y = Layout::nhwc;
    int batch = 0;
  };
  static LibraryKernel conv_forward(const Operation& operation,
                                    const Planes& planes);  // x w b -> y
  // dy w -> dx
  static LibraryKernel conv_backward_data(const Operation& operation, const Planes& planes);
  // The same for 1x1, stride 1, as a forward convolution with transposed weights, which can add to
  // dx what it computes.
  static LibraryKernel conv_backward_data_1x1(const Operation& operation, const Planes& planes,
                                              bool adds);
  // dy x -> dw, and db unless the operation's bias cancels
  static LibraryKernel conv_backward_weights(const Operation& operation, const Planes& planes);

  struct Operands {
    const void* left = nullptr;
    const void* right = nullptr;
    const float* bias = nullptr;
    void* out = nullptr;
    float* bias_out = nullptr;
  };
  // `scratch`: scratch_bytes() on a cache line, for this call alone.
  void run(const Operands& operands, std::byte* scratch);
  std::size_t scratch_bytes() const;

  const std::string& implementation() const;  // "brg:avx512_core"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::cpu

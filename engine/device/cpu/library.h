// oneDNN, wrapped so that its headers stay in this folder and its scratch memory is ours: nothing
// is allocated when a primitive runs.
#pragma once

#include <memory>
#include <string>

#include "engine/core/memory.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

std::string library_version();  // "oneDNN 2.6.3 (OpenMP)"

// A kernel of oneDNN with its operands' addresses left open. Made on the thread that runs it,
// after the number of threads is set.
class LibraryKernel {
 public:
  LibraryKernel();
  ~LibraryKernel();
  LibraryKernel(LibraryKernel&&) noexcept;
  LibraryKernel& operator=(LibraryKernel&&) noexcept;

  // out[m x n] = left[m x k] right[k x n], row-major; a transposed operand is stored the other way
  // round. Throws internal if only oneDNN's reference code would run it.
  static LibraryKernel matmul(int m, int k, int n, bool transpose_left, bool transpose_right);

  // NHWC, weights in canonical order (rows, columns, in, out), of `batch` samples.
  static LibraryKernel conv_forward(const Operation& operation, int batch);        // x w b -> y
  static LibraryKernel conv_backward_data(const Operation& operation, int batch);  // dy w -> dx
  // dy x -> dw db
  static LibraryKernel conv_backward_weights(const Operation& operation, int batch);

  struct Operands {
    const float* left = nullptr;
    const float* right = nullptr;
    const float* bias = nullptr;
    float* out = nullptr;
    float* bias_out = nullptr;
  };
  void run(const Operands& operands);

  const std::string& implementation() const;  // "brg:avx512_core"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::cpu

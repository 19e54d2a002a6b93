// A wrapper of oneDNN that keeps its headers inside this folder and provides all memory. Primitives
// allocate nothing when they run; all kernels of a program share one scratch area.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/core/memory.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

// The memory layout of planes. oneDNN's fp32 kernels prefer channels in blocks of 16. bf16 uses
// NHWC. A dense layer reads its input as flattened NHWC.

enum class Layout { nhwc, nchw, blocked };

constexpr int kBlock = 16;  // channels of an image in a blocked layout

const char* to_string(Layout layout);

// One layout per tensor of the plan. `blocked_pays`: oneDNN runs fp32 on AVX-512 here.
std::vector<Layout> choose_layouts(const Plan& plan, bool blocked_pays);

std::string library_version();  // "oneDNN 2.6.3"
// Throws usage with the cure unless oneDNN computes by OpenMP (`runtime` is a dnnl_cpu_runtime):
// any other would ignore a replica's CPUs and threads.
void check_library_threads(unsigned runtime);
void check_library_threads();
bool library_has_avx512();  // its fp32 kernels use AVX-512 here
bool library_has_amx();     // its bf16 kernels use matrix tiles here

// A oneDNN kernel without operand addresses. Create it on the thread that runs it, after setting
// the number of threads. On x86-64, factories throw usage if only oneDNN's reference code could run
// it (reference_code.h).
class LibraryKernel {
 public:
  LibraryKernel();
  ~LibraryKernel();
  LibraryKernel(LibraryKernel&&) noexcept;
  LibraryKernel& operator=(LibraryKernel&&) noexcept;
  explicit operator bool() const { return state_ != nullptr; }

  // out[m x n] = left[m x k] right[k x n], row-major. Transposed operands are stored column-major.
  // `type` is that of left and right. `adds`: to what is in out.
  static LibraryKernel matmul(int m, int k, int n, bool transpose_left, bool transpose_right,
                              DType type = DType::f32, DType out_type = DType::f32,
                              bool adds = false);

  // The planes of a convolution. Weights and their gradient are fp32 in canonical order (rows,
  // columns, in, out); bias and its gradient are fp32.
  struct Planes {
    DType type = DType::f32;
    Layout x = Layout::nhwc, y = Layout::nhwc;
    int batch = 0;
  };
  static LibraryKernel conv_forward(const Operation& operation,
                                    const Planes& planes);  // x w b -> y
  // dy w -> dx
  static LibraryKernel conv_backward_data(const Operation& operation, const Planes& planes);
  // The same for 1x1 with stride 1, as a forward convolution with transposed weights, which can
  // accumulate into dx.
  static LibraryKernel conv_backward_data_1x1(const Operation& operation, const Planes& planes,
                                              bool adds);
  // dy x -> dw, and db unless the bias cancels
  static LibraryKernel conv_backward_weights(const Operation& operation, const Planes& planes);

  struct Operands {
    const void* left = nullptr;
    const void* right = nullptr;
    const float* bias = nullptr;
    void* out = nullptr;
    float* bias_out = nullptr;
  };
  // `scratch`: scratch_bytes(), aligned to a cache line, for this call only.
  void run(const Operands& operands, std::byte* scratch);
  std::size_t scratch_bytes() const;

  const std::string& implementation() const;  // "brg:avx512_core"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::cpu

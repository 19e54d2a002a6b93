// A 3x3 convolution of stride 1 with Winograd's F(4x4, 3x3); see winograd_kernels.h. It computes in
// fp32; planes are fp32, or bf16 in NHWC.
#pragma once

#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/library.h"
#include "engine/device/cpu/parallel.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

// The tiles of all samples, row by row. Planes are NHWC or blocked.
class Fp32Tiles {
 public:
  Fp32Tiles(const Operation& operation, int batch, Layout layout);

  std::size_t count() const { return count_; }
  // Addresses of the first block of channels at a tile's Side x Side places, of which the first one
  // is `offset` before the tile's first output place; null outside of the image.
  template <std::size_t Side, typename T>
  void places(std::size_t tile, std::size_t offset, T* plane, std::size_t channels,
              T* (&places)[Side * Side]) const;
  // Elements from one block of a place to the next.
  std::size_t block_stride() const { return blocked_ ? height_ * width_ * kFp32Block : kFp32Block; }

 private:
  bool blocked_;
  std::size_t height_, width_, rows_, columns_, count_;
};

// Whether this CPU has kernels, the shape fits, and so few tiles exceed the edges that this is
// faster than the direct sum.
bool winograd_fp32_supports(const Operation& operation, const Kernels& kernels);

// The convolution, or the gradient of its input, which is a convolution with rotated weights.
class WinogradFp32 {
 public:
  enum class Pass { forward, backward_data };
  WinogradFp32(const Operation& operation, const LibraryKernel::Planes& planes, Pass pass,
               const Kernels& kernels, const Parallel& parallel);

  // x and y (or dy and dx) of the whole batch, of the planes' type; w in canonical order; bias may
  // be null.
  void run(const void* x, const float* w, const float* bias, void* y, std::byte* scratch) const;
  std::size_t scratch_bytes() const;

 private:
  void transform_weights(const float* w, float* weights) const;
  template <typename T>
  void run_tiles(std::size_t first, std::size_t end, const T* x, const float* weights,
                 const float* bias, T* y, float* space) const;
  std::size_t weight_floats() const { return kFp32Points * in_ * out_; }
  std::size_t point_floats() const { return chunk_ * left_row_; }
  std::size_t space_floats() const;

  const WinogradFp32Kernels& kernels_;
  const Parallel& parallel_;
  Fp32Tiles tiles_;
  DType type_;  // of planes
  bool backward_;
  std::size_t in_, out_;  // channels of x and y
  std::size_t chunk_;     // tiles
  std::size_t left_row_;  // floats from one tile's point to the next tile's
  bool streams_;          // writes y past the caches
};

// The gradient of the weights.
class WinogradFp32Gradient {
 public:
  WinogradFp32Gradient(const Operation& operation, const LibraryKernel::Planes& planes,
                       const Kernels& kernels, const Parallel& parallel);

  // x and dy of the whole batch. Sets dw, in canonical order. The result does not depend on the
  // number of threads.
  void run(const void* x, const void* dy, float* dw, std::byte* scratch) const;
  std::size_t scratch_bytes() const;

 private:
  template <typename T>
  void run_planes(const T* x, const T* dy, float* dw, std::byte* scratch) const;
  void multiply(std::size_t tiles, bool adds, const float* left, const float* right,
                float* sums) const;

  const WinogradFp32Kernels& kernels_;
  const Parallel& parallel_;
  Fp32Tiles tiles_;
  DType type_;  // of planes
  std::size_t channels_, filters_;
  std::size_t chunk_;  // tiles
};

}  // namespace paceline::cpu

// A 3x3 convolution of stride 1 in bf16 with Winograd's F(2x2, 3x3); see winograd_kernels.h.
//
// Transformed inputs are rounded to bf16 like inputs. So the error of a result is about one and a
// half times that of the direct sum (engine/device/README.md).
#pragma once

#include <vector>

#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/parallel.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

// The tiles of all samples, row by row.
class WinogradTiles {
 public:
  WinogradTiles(const Operation& operation, int batch);

  std::size_t count() const { return count_; }
  // Addresses of a tile's input places (4x4) or output places (2x2), `channels` wide. Places
  // outside of the image are `outside`.
  template <typename T>
  void seen(std::size_t tile, T* plane, std::size_t channels, T* outside, T* (&places)[16]) const;
  template <typename T>
  void own(std::size_t tile, T* plane, std::size_t channels, T* outside, T* (&places)[4]) const;

 private:
  struct Corner {  // the tile's first output place
    std::size_t sample, row, column;
  };
  Corner corner(std::size_t tile) const;

  std::size_t height_, width_, rows_, columns_, count_;
};

// Whether the CPU has the instructions, the shape fits, and so few tiles exceed the edges that this
// is faster.
bool winograd_supports(const Operation& operation, const Kernels& kernels);

// The convolution, or the gradient of its input, which is a convolution with rotated weights.
class Winograd {
 public:
  enum class Pass { forward, backward_data };
  Winograd(const Operation& operation, int batch, Pass pass, const Kernels& kernels,
           const Parallel& parallel);

  // x and y (or dy and dx) of the whole batch in NHWC; w in canonical order; bias may be null.
  void run(const Bf16* x, const float* w, const float* bias, Bf16* y, std::byte* scratch) const;
  std::size_t scratch_bytes() const;

 private:
  void transform_weights(const float* w, std::uint32_t* weights) const;
  void run_tiles(std::size_t first, std::size_t end, const Bf16* x, const std::uint32_t* weights,
                 const float* bias, Bf16* y, std::byte* space) const;
  std::size_t weight_words() const { return kPoints * in_ * out_ / 2; }
  std::size_t space_bytes() const;

  const WinogradKernels& kernels_;
  const Parallel& parallel_;
  WinogradTiles tiles_;
  bool backward_;
  std::size_t in_, out_;     // channels of x and y
  bool streams_;             // writes y past the caches
  std::vector<Bf16> zeros_;  // a place outside of the image
};

// The gradient of the weights.
class WinogradGradient {
 public:
  WinogradGradient(const Operation& operation, int batch, const Kernels& kernels,
                   const Parallel& parallel);

  // x and dy of the whole batch in NHWC. Sets dw, in canonical order.
  void run(const Bf16* x, const Bf16* dy, float* dw, std::byte* scratch) const;
  std::size_t scratch_bytes() const;

 private:
  // Rows of points and tiles of one thread. If the sums are large, threads divide the rows.
  struct Share {
    std::size_t first_row, end_row;
    std::size_t first_tile, end_tile;
    float* sums;
  };
  struct Space {
    std::uint32_t *left, *right;
  };
  Share make_share(int thread, float* sums) const;
  void run_share(const Share& share, const Space& space, const Bf16* x, const Bf16* dy) const;
  void transform(std::size_t row, std::size_t first, std::size_t end, const Space& space,
                 const Bf16* x, const Bf16* dy) const;
  void multiply(std::size_t pairs, bool adds, const Space& space, float* sums) const;
  std::size_t sums() const { return kPoints * channels_ * filters_; }
  std::size_t left_words() const;
  std::size_t right_words() const;
  std::size_t space_bytes() const;

  const ProductKernels& products_;
  const WinogradKernels& kernels_;
  const Parallel& parallel_;
  WinogradTiles tiles_;
  std::size_t channels_, filters_;
  std::size_t row_parts_, tile_parts_;
  std::vector<Bf16> zeros_;
};

}  // namespace paceline::cpu

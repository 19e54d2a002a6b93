// The weight gradient of a convolution in bf16, as one matrix product per row of the window.
//
// In NHWC the places of a window row are contiguous, columns x channels of them. For row u of the
// window, dw[u] (columns x channels rows, filters wide: the canonical layout) is
//
//   dw[u] = sum over output places p of window_row(p, u)^T dy[p]
//
// A *chunk* is as many output places as keep a panel of dy in the first-level cache. Its dy is
// packed once, its windows once for each u. Threads divide the filters if dw is large, and the
// output rows otherwise. In the latter case the partial dw are summed in thread order.
#pragma once

#include "engine/core/memory.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/parallel.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

class WeightGradient {
 public:
  // Whether the CPU has the instructions and the shape fits.
  static bool supports(const Operation& operation, const Kernels& kernels);

  WeightGradient(const Operation& operation, int batch, const Kernels& kernels,
                 const Parallel& parallel);

  // x and dy of the whole batch in NHWC. Sets dw, in canonical order.
  void run(const Bf16* x, const Bf16* dy, float* dw, std::byte* scratch) const;

  std::size_t scratch_bytes() const;

 private:
  static constexpr std::size_t kLineWords = 16;

  // Filters and output rows of one thread, and the destination of its part of dw.
  struct Share {
    std::size_t first_filter, filters;
    std::size_t first_row, end_row;
    float* dw;
  };
  // A thread's parts of the scratch area.
  struct Space {
    Bf16* padded;  // one input row with its padding
    std::uint32_t *left, *right;
  };

  std::size_t padded_elements() const { return (width_ + 2 * padding_) * channels_; }
  std::size_t left_panels() const { return (window_ + kLeftPanel - 1) / kLeftPanel; }
  std::size_t space_bytes() const;
  std::size_t weights() const { return kernel_ * window_ * filters_; }
  std::size_t rows_of_chunk() const;
  std::size_t count_pairs(std::size_t row) const { return (count_places(row) + 1) / 2; }
  std::size_t count_places(std::size_t row) const;
  // Words between panels, for chunks of at most this many pairs: an odd number of cache lines,
  // because multiples of large powers of two map to the same cache sets.
  static std::size_t odd_lines(std::size_t words) {
    return ((words + kLineWords - 1) / kLineWords | 1) * kLineWords;
  }
  std::size_t left_stride() const { return odd_lines(chunk_pairs() * kLeftPanel); }
  std::size_t right_stride() const { return odd_lines(chunk_pairs() * kRightPanel); }
  std::size_t chunk_pairs() const { return rows_of_chunk() * ((out_width_ + 1) / 2); }

  Share make_share(int thread, float* dw, float* parts) const;
  Space make_space(int thread, std::byte* scratch) const;
  void run_share(const Share& share, const Space& space, const Bf16* x, const Bf16* dy) const;
  void pack_windows(const Space& space, const Bf16* x, std::size_t row, std::size_t u) const;
  // The memory that the next chunk packs.
  FetchAhead fetch_ahead(const Share& share, std::size_t first, const Bf16* x,
                         const Bf16* dy) const;
  void multiply(const Share& share, const Space& space, std::size_t u, std::size_t pairs, bool adds,
                FetchAhead& ahead) const;

  const ProductKernels& kernels_;
  const Parallel& parallel_;
  bool flat_;  // 1x1 of stride 1: rows can be divided freely
  std::size_t batch_, height_, width_, channels_;
  std::size_t out_height_, out_width_, filters_;
  std::size_t kernel_, stride_, padding_;
  std::size_t window_;  // elements of a window row
  std::size_t rows_;    // output rows of all samples
  std::size_t filter_parts_, row_parts_;
};

}  // namespace paceline::cpu

// A 1x1 convolution in bf16, or the gradient of its input: y = x w + bias at each place, in NHWC. A
// stride skips places of the wider plane.
#pragma once

#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/norm.h"
#include "engine/device/cpu/parallel.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

class Pointwise {
 public:
  // Whether the CPU has the instructions and the shape fits.
  static bool supports(const Operation& operation, const Kernels& kernels);

  enum class Pass { forward, backward_data };
  Pointwise(const Operation& operation, int batch, Pass pass, const Kernels& kernels,
            const Parallel& parallel);

  // x and y (or dy and dx) of the whole batch; w in canonical order.
  struct Work {
    const Bf16* x;
    const float* w;
    const float* bias = nullptr;
    Bf16* y = nullptr;
    bool adds = false;  // accumulates into y; else skipped places become zero
    // Sums to compute in the same pass, may be null: of y (its first row becomes the pivot) over
    // this many samples; or what a batch_norm needs of the gradient y, if the stride is 1.
    ChannelSums* sums = nullptr;
    std::size_t samples = 0;
    const GradientSums* gradient_sums = nullptr;
  };
  void run(const Work& work, std::byte* scratch) const;
  std::size_t scratch_bytes() const;

 private:
  static constexpr std::size_t kBlock = 48;  // places per block: with a panel they fit in the cache

  static ChannelSums* channel_sums(const Work& work) {
    return work.gradient_sums ? work.gradient_sums->sums : work.sums;
  }
  void pack(const float* w, std::uint32_t* weights) const;
  void run_thread(const Work& work, const std::uint32_t* weights, int thread) const;
  // Index in the wider plane of a place of the compact plane.
  std::size_t wide_place(std::size_t place) const;
  void clear_rows(std::size_t first, std::size_t end, Bf16* y) const;
  FetchAhead fetch_ahead(const Work& work, std::size_t first, std::size_t end) const;
  void run_block(const Work& work, const std::uint32_t* weights, std::size_t first, std::size_t end,
                 std::size_t all, const PointwiseSums* sums) const;
  std::size_t weight_words() const { return in_ * out_ / 2; }

  const PointwiseKernels& kernels_;
  const Parallel& parallel_;
  bool backward_;
  std::size_t in_, out_;  // channels of x and y
  // rows_, columns_: of the compact plane.
  std::size_t batch_, height_, width_, rows_, columns_, stride_;
  bool streams_;  // writes y past the caches
};

}  // namespace paceline::cpu

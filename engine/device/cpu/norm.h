// A batch_norm operation with everything fused into it, over whole planes, on all threads.
//
// Statistics cover only the samples present in the batch. Rows missing in an incomplete batch are
// normalised too, so that all values stay finite; their gradients are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/device/cpu/bf16.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/library.h"
#include "engine/device/cpu/parallel.h"

namespace paceline::cpu {

// Sums over the places of a plane, by channel: in float over a few hundred rows, then in double.
// One set per thread. Computed by batch_norm itself, or by the kernel that writes the plane.

struct ChannelSums {
  static constexpr std::size_t kRows = 512;  // float sums are flushed to double after this many

  struct OfThread {
    std::vector<float> s, q;
    std::vector<double> total_s, total_q;
    void flush(std::size_t channel, std::size_t count);
  };

  ChannelSums(std::size_t channels, int thread_count);
  void clear();
  bool take() { return std::exchange(taken, false); }

  std::vector<float> pivot;  // subtracted from all values
  std::vector<OfThread> threads;
  bool taken = false;  // the kernel that wrote the plane computed its sums; valid for one use
};

// Sums that the kernel that completes a gradient computes for the next batch_norm, over the first
// `samples`. With g = dy where ReLU passes the element, else 0: s sums g, q sums g (x - pivot).
struct GradientSums {
  ChannelSums* sums;
  const Bf16* x;
  const std::uint8_t* signs;  // null: no ReLU
  ChannelSums* branch;        // q only, for x2; may be null
  const Bf16* x2;
  std::size_t samples;
};

// Parameters and running averages of a normalisation, by channel.
struct NormArrays {
  const float *gamma = nullptr, *beta = nullptr;
  float *mean = nullptr, *variance = nullptr;
  float *gamma_grad = nullptr, *beta_grad = nullptr;
};

class Norm {
 public:
  Norm(const Operation& operation, Layout layout, int batch, const Kernels& kernels,
       const Parallel& parallel);

  template <typename T>
  struct Forward {
    const T *x, *skip;  // skip: the other summand; may be null
    T* y;
    std::uint8_t* signs;  // with ReLU
    NormArrays arrays, branch;
    std::size_t samples;
    bool train;
  };
  template <typename T>
  void forward(const Forward<T>& work);

  // Where a kernel that writes x (or the branch's x) in training stores its sums, including
  // `pivot`.
  ChannelSums& input_sums(bool of_branch) { return (of_branch ? branch_ : main_).sums; }
  // The sums for a kernel that completes dy. Call after forward, with the planes of `backward`.
  GradientSums gradient_sums(const Bf16* x, const std::uint8_t* signs, const Bf16* skip,
                             std::size_t samples);

  template <typename T>
  struct Backward {
    const T *x, *dy;
    T* dx;  // null: not needed
    const std::uint8_t* signs;
    const T* skip;
    T* skip_grad;  // null: not needed; may equal dy
    NormArrays arrays, branch;
    std::size_t samples;
  };
  template <typename T>
  void backward(const Backward<T>& work);

 private:
  // Consecutive rows, with the channels from `channel` on. A row has width_ channels.
  struct Run {
    std::size_t row, rows, channel;
  };
  // Values of one normalisation, one element per channel.
  struct Statistics {
    Statistics(std::size_t channels, int threads);
    ChannelSums sums;
    std::vector<float> a, b, c1, c0;
    std::vector<double> mean, deviation;  // deviation: 1 / sqrt(variance + epsilon)
  };
  struct Totals {
    double s, q;
  };

  // Whether planes leave the caches anyway; rows of whole vectors can be written past them.
  template <typename T>
  bool streams() const {
    return width_ % 16 == 0 && parallel_.streams(batch_ * plane_ * channels_ * sizeof(T));
  }
  bool by_groups() const { return groups_ >= static_cast<std::size_t>(parallel_.threads()); }
  template <typename Visit>
  void runs_of_group(std::size_t group, std::size_t samples, Visit visit) const;
  template <typename Visit>
  void runs_of_thread(int thread, std::size_t samples, Visit visit) const;
  static Totals compute_totals(const ChannelSums& sums, std::size_t channel);
  // Calls sum_up(run, thread) over `samples`, then finish(begin, end) over channels, then
  // apply(run) over `applied` samples. Works in groups that fit the cache, if there are enough.
  template <typename SumUp, typename Finish, typename Apply>
  void in_two_passes(std::size_t samples, std::size_t applied, SumUp sum_up, Finish finish,
                     Apply apply);
  // Channels [begin, end).
  void finish_forward(bool of_branch, const NormArrays& arrays, std::size_t begin, std::size_t end,
                      std::size_t samples);
  void finish_backward(bool of_branch, const NormArrays& arrays, std::size_t begin, std::size_t end,
                       std::size_t samples);
  void take_running(bool of_branch, const NormArrays& arrays);
  double epsilon(bool of_branch) const { return of_branch ? op_.branch->epsilon : op_.epsilon; }
  template <typename T>
  void set_pivot(Statistics& statistics, const T* x) const;
  void begin_gradient_sums();
  template <typename T>
  void clear_missing(T* gradient, std::size_t samples) const;

  const Operation& op_;
  const Kernels& kernels_;
  const Parallel& parallel_;
  std::size_t channels_, width_, groups_, plane_, batch_;
  Statistics main_, branch_;
};

}  // namespace paceline::cpu

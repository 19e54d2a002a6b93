// Sums over the places of a plane, by channel: in float over a few hundred rows, then in double.
// One set per thread. Computed by batch_norm itself, or by the kernel that writes the plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/device/cpu/bf16.h"

namespace paceline::cpu {

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

}  // namespace paceline::cpu

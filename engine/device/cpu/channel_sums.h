// Sums over the places of a plane, by channel: in float over some hundred rows, then in double; a
// set for each thread. Taken by batch_norm itself, or on the way by the kernel that writes the
// plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/device/cpu/bf16.h"

namespace paceline::cpu {

struct ChannelSums {
  static constexpr std::size_t kRows = 512;  // float sums are emptied after so many

  struct OfThread {
    std::vector<float> s, q;
    std::vector<double> total_s, total_q;
    void flush(std::size_t channel, std::size_t count);
  };

  ChannelSums(std::size_t channels, int thread_count);
  void clear();
  bool take() { return std::exchange(taken, false); }

  std::vector<float> pivot;  // is subtracted from all values
  std::vector<OfThread> threads;
  bool taken = false;  // whoever wrote the plane took its sums; good for one use
};

// What the kernel that completes a gradient sums up for the batch_norm that reads it next: over
// the first `samples`, with g = dy where the ReLU let an element pass, s of g, q of g (x - pivot).
struct GradientSums {
  ChannelSums* sums;
  const Bf16* x;
  const std::uint8_t* signs;  // null: no ReLU
  ChannelSums* branch;        // q alone, of x2; or null
  const Bf16* x2;
  std::size_t samples;
};

}  // namespace paceline::cpu

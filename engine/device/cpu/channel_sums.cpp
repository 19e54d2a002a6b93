#include "engine/device/cpu/channel_sums.h"

#include <algorithm>

namespace paceline::cpu {

ChannelSums::ChannelSums(std::size_t channels, int thread_count)
    : pivot(channels),
      threads(static_cast<std::size_t>(thread_count),
              {std::vector<float>(channels), std::vector<float>(channels),
               std::vector<double>(channels), std::vector<double>(channels)}) {}

void ChannelSums::clear() {
  for (OfThread& thread : threads) {
    std::fill(thread.total_s.begin(), thread.total_s.end(), 0.0);
    std::fill(thread.total_q.begin(), thread.total_q.end(), 0.0);
  }
}

void ChannelSums::OfThread::flush(std::size_t channel, std::size_t count) {
  const auto move = [&](std::vector<float>& from, std::vector<double>& to) {
    for (std::size_t c = channel; c < channel + count; ++c) {
      to[c] += static_cast<double>(from[c]);
      from[c] = 0;
    }
  };
  move(s, total_s);
  move(q, total_q);
}

}  // namespace paceline::cpu

#include "engine/device/probe.h"

#include <algorithm>

#include "engine/core/clock.h"

namespace paceline {

Probe timed_probe(const std::function<double(std::size_t)>& multiply_add,
                  const std::function<void(std::byte*, const std::byte*, std::size_t)>& copy) {
  constexpr std::size_t kRounds = 200000, kBytes = std::size_t{32} << 20;
  const Memory from = host_memory(kBytes), to = host_memory(kBytes);
  Probe probe;
  for (int repeat = 0; repeat < 3; ++repeat) {
    double start = now_seconds();
    const double operations = multiply_add(kRounds);
    probe.flops_per_second = std::max(probe.flops_per_second, operations / (now_seconds() - start));
    start = now_seconds();
    copy(to.data(), from.data(), kBytes);
    probe.bytes_per_second =
        std::max(probe.bytes_per_second, static_cast<double>(kBytes) / (now_seconds() - start));
  }
  return probe;
}

}  // namespace paceline

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/core/random.h"
#include "engine/core/text.h"
#include "results/step_samples.h"
#include "sweeps/inventory.h"

namespace paceline {

std::vector<ScheduledRun> schedule(std::size_t points, int repeats, bool interleaved,
                                   std::uint64_t seed) {
  std::vector<ScheduledRun> runs;
  if (!interleaved) {
    for (std::size_t point = 0; point < points; ++point) {
      for (int repeat = 1; repeat <= repeats; ++repeat) runs.push_back({point, repeat});
    }
    return runs;
  }
  for (int repeat = 1; repeat <= repeats; ++repeat) {
    const std::size_t first = runs.size();
    for (std::size_t point = 0; point < points; ++point) runs.push_back({point, repeat});
    RandomSequence random(seed, Stream::order, static_cast<std::uint32_t>(repeat));
    for (std::size_t i = points; i > 1; --i) {
      std::swap(runs[first + i - 1], runs[first + random.below(static_cast<std::uint32_t>(i))]);
    }
  }
  return runs;
}

std::vector<ScheduledRun> schedule_sides(std::size_t points, std::size_t sides, int rounds,
                                         std::uint64_t seed) {
  std::vector<ScheduledRun> runs;
  for (const ScheduledRun& run : schedule(points, rounds, true, seed)) {
    const std::size_t first = runs.size();
    for (std::size_t side = 0; side < sides; ++side) runs.push_back({run.point, run.repeat, side});
    RandomSequence random(seed, Stream::order, static_cast<std::uint32_t>(run.repeat),
                          static_cast<std::uint32_t>(run.point) + 1);
    for (std::size_t i = sides; i > 1; --i) {
      std::swap(runs[first + i - 1], runs[first + random.below(static_cast<std::uint32_t>(i))]);
    }
  }
  return runs;
}

void Eta::add(std::size_t point, double seconds) {
  seconds_[point].push_back(seconds);
}

std::optional<double> Eta::remaining(const std::vector<std::size_t>& points) const {
  if (seconds_.empty()) return std::nullopt;
  const double any = median(flattened(seconds_, [](const auto& of) { return of.second; }));
  double total = 0;
  for (const std::size_t point : points) {
    const auto found = seconds_.find(point);
    total += found == seconds_.end() ? any : median(found->second);
  }
  return total;
}

std::string about(double seconds) {
  if (seconds >= 59.5) return "about " + format_seconds(seconds);
  return fmt::format("about {:.0f} s", std::max(1.0, std::round(seconds)));
}

}  // namespace paceline

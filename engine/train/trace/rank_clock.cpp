#include "engine/train/trace/rank_clock.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/core/clock.h"

namespace paceline {

namespace {

constexpr std::size_t kRoundTrips = 32;

}  // namespace

ClockBounds clock_bounds(const std::vector<RoundTrip>& first, const std::vector<RoundTrip>& other) {
  ClockBounds bounds{-std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < first.size(); ++i) {
    bounds.low = std::max(bounds.low, first[i].came - other[i].left);
    bounds.high = std::min(bounds.high, first[i].left - other[i].came);
  }
  if (bounds.low > bounds.high) std::swap(bounds.low, bounds.high);
  return bounds;
}

RankClock::RankClock(const ClockReading& start, const ClockReading& end) : start_(start.at) {
  const ClockBounds both{std::max(start.bounds.low, end.bounds.low),
                         std::min(start.bounds.high, end.bounds.high)};
  if (both.low <= both.high || end.at <= start.at) {
    const ClockBounds& bounds = both.low <= both.high ? both : start.bounds;
    offset_ = bounds.middle();
    uncertainty_ = (bounds.high - bounds.low) / 2;
    return;
  }
  offset_ = start.bounds.middle();
  drift_ = (end.bounds.middle() - offset_) / (end.at - start.at);
  uncertainty_ =
      std::max(start.bounds.high - start.bounds.low, end.bounds.high - end.bounds.low) / 2;
}

std::vector<ClockReading> compare_clocks(Communicator& communicator) {
  const auto size = static_cast<std::size_t>(communicator.size());
  std::vector<RoundTrip> mine(kRoundTrips);
  for (RoundTrip& trip : mine) {
    trip.came = now_seconds();
    communicator.barrier();
    trip.left = now_seconds();
  }
  std::vector<RoundTrip> all(kRoundTrips * size);
  communicator.all_gather(mine.data(), kRoundTrips * sizeof(RoundTrip), all.data());
  std::vector<ClockReading> readings(size);
  const auto of = [&](std::size_t rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * kRoundTrips);
    return std::vector<RoundTrip>(begin, begin + kRoundTrips);
  };
  const std::vector<RoundTrip> first = of(0);
  for (std::size_t rank = 0; rank < size; ++rank) {
    const std::vector<RoundTrip> theirs = of(rank);
    readings[rank].at = theirs.back().left;
    if (rank > 0) readings[rank].bounds = clock_bounds(first, theirs);
  }
  return readings;
}

}  // namespace paceline

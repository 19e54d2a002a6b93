#include "engine/core/clock.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>

namespace paceline {

double now_seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

double unix_seconds() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

std::string utc_time_stamp() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string new_session_id() {
  return fmt::format("{:%Y%m%dT%H%M%S}-{:04x}", fmt::gmtime(std::time(nullptr)),
                     std::random_device{}() & 0xffff);
}

TraceRing::TraceRing(std::size_t capacity) : ring_(std::max<std::size_t>(1, capacity)) {}

void TraceRing::note(std::string_view name, double begin, double end, std::uint64_t number,
                     std::uint64_t bytes, std::uint32_t part) noexcept {
  TraceSpan span{begin, end, number, bytes, part, {}};
  std::copy_n(name.begin(), std::min(name.size(), span.name.size() - 1), span.name.begin());
  std::lock_guard lock(mutex_);
  ring_[noted_++ % ring_.size()] = span;
}

std::vector<TraceSpan> TraceRing::spans() const {
  std::lock_guard lock(mutex_);
  std::vector<TraceSpan> all;
  const std::uint64_t count = std::min<std::uint64_t>(noted_, ring_.size());
  all.reserve(count);
  for (std::uint64_t i = noted_ - count; i < noted_; ++i) all.push_back(ring_[i % ring_.size()]);
  return all;
}

std::uint64_t TraceRing::noted() const {
  std::lock_guard lock(mutex_);
  return noted_;
}

std::uint64_t TraceRing::dropped() const {
  std::lock_guard lock(mutex_);
  return noted_ - std::min<std::uint64_t>(noted_, ring_.size());
}

}  // namespace paceline

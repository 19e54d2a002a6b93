#include "engine/core/trace.h"

#include <algorithm>

namespace paceline {

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

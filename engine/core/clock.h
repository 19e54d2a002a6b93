// The monotonic clock of a process, in seconds from an arbitrary start. A call takes about 25 ns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

double now_seconds();
double unix_seconds();  // since 1970; the system clock, which can be adjusted

// "2026-11-21T05:15:00Z", UTC.
std::string utc_time_stamp();

// "20261121T051500-3f9a": the time and four random digits.
std::string new_session_id();

// What one lane of a replica did and when, kept in memory: the raw data of a trace. Exists only if
// a ring is created.

// From `begin` to `end`, as now_seconds(). Trivially copyable, because it is sent between ranks.
struct TraceSpan {
  double begin = 0, end = 0;
  std::uint64_t number = 0;  // a step, or the sequence number of a collective
  std::uint64_t bytes = 0;   // that were moved; 0: unknown
  std::uint32_t part = 0;    // index of the thread, if several share a lane
  std::array<char, 36> name{};

  std::string_view text() const { return name.data(); }
};

// Keeps the last `capacity` spans, and counts overwritten ones. Does not allocate after
// construction. Thread-safe; the rarely contended lock costs about 20 ns.
class TraceRing {
 public:
  explicit TraceRing(std::size_t capacity);

  // Cuts names that are too long.
  void note(std::string_view name, double begin, double end, std::uint64_t number = 0,
            std::uint64_t bytes = 0, std::uint32_t part = 0) noexcept;

  std::vector<TraceSpan> spans() const;  // oldest first
  std::uint64_t noted() const;           // in total
  std::uint64_t dropped() const;         // overwritten

 private:
  mutable std::mutex mutex_;
  std::vector<TraceSpan> ring_;
  std::uint64_t noted_ = 0;
};

}  // namespace paceline

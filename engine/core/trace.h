// What one lane of a replica did and when, kept in memory while it runs: the raw material of a
// trace. Off unless somebody makes a ring.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

namespace paceline {

// From `begin` to `end`, seconds of now_seconds(). Trivially copyable: it is sent as it stands.
struct TraceSpell {
  double begin = 0, end = 0;
  std::uint64_t number = 0;  // a step, or the sequence number of a collective
  std::uint64_t bytes = 0;   // that it moved; 0: not said
  std::uint32_t part = 0;    // where several threads share a lane: which
  std::array<char, 28> name{};

  std::string_view text() const { return name.data(); }
};

// The last `capacity` spans; older ones are written over and counted. Nothing is allocated after
// construction. From any thread; a lock, which threads of one lane seldom share, costs about 20 ns.
class TraceRing {
 public:
  explicit TraceRing(std::size_t capacity);

  // A longer name is cut.
  void note(std::string_view name, double begin, double end, std::uint64_t number = 0,
            std::uint64_t bytes = 0, std::uint32_t part = 0) noexcept;

  std::vector<TraceSpell> spans() const;  // the oldest first
  std::uint64_t noted() const;            // in all
  std::uint64_t dropped() const;          // that were written over

 private:
  mutable std::mutex mutex_;
  std::vector<TraceSpell> ring_;
  std::uint64_t noted_ = 0;
};

}  // namespace paceline

// All-reduce among the ranks of one node, over memory that all of them can see.
//
// A *part* is one rank's copy of the data; a *slice* is the range of elements that one rank is
// responsible for. After a barrier every rank adds its slice over all parts, in rank order, and
// writes the sum back into every part; a second barrier ends it. Each element is read once and
// written once by one rank only, so the time is that of a memory copy, and every rank gets the
// same bits. Used by `mirrored` (parts in one process), `mpi` (parts in a shared window) and `gloo`
// (parts in a shared file).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/comm/communicator.h"

namespace paceline {

constexpr int kMaxTeam = 256;

// The part that all ranks share; zero bytes are a valid initial state. Lives in process memory or
// in a shared window, so it holds lock-free atomics only.
struct NodeAllReduceState {
  struct alignas(64) Flag {
    std::atomic<std::uint32_t> epoch;
  };
  std::array<Flag, kMaxTeam> arrived;
  alignas(64) std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint32_t> bell;     // futex word: rung when somebody arrives and others sleep
  std::atomic<std::uint32_t> aborted;  // 1 + the rank that aborted
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

class NodeAllReduce {
 public:
  // `control` outlives the team. `spin_microseconds`: how long a wait polls before it sleeps; 0
  // where ranks share cores. `names`: how errors call the ranks, where not by their number here.
  NodeAllReduce(NodeAllReduceState& control, int rank, int size, Deadlines deadlines,
                double spin_microseconds, std::vector<int> names = {});

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Is called every 50 ms of a wait with the wait's label, and may throw to end it: of ranks that
  // are processes somebody may be gone.
  void watch(std::function<void(std::string_view label)> watch) { watch_ = std::move(watch); }

  // Throws stall past the deadline, naming the ranks that did not come, and peer_lost after an
  // abort. Allocates nothing on the good path.
  // `extra_seconds` is added to the deadline.
  void barrier(std::string_view label, double extra_seconds = 0);

  // parts[r] is rank r's copy of `count` elements, aligned to the element.
  void all_reduce(std::span<std::byte* const> parts, std::size_t count, DType type,
                  std::string_view label);

  // For teams whose first rank then exchanges its node's sum with other nodes: the sum goes into
  // part 0 alone, and once the first rank comes back, part 0 into all.
  void reduce_to_first(std::span<std::byte* const> parts, std::size_t count, DType type,
                       std::string_view label);
  void copy_from_first(std::span<std::byte* const> parts, std::size_t bytes,
                       std::string_view label);

  void abort() noexcept;
  void throw_if_aborted(std::string_view label) const;  // peer_lost

 private:
  bool all_arrived(std::uint32_t epoch) const;
  void sum_slice(std::span<std::byte* const> parts, std::size_t written, std::size_t count,
                 DType type) const;
  void sleep_until_arrived(std::uint32_t epoch, std::string_view label, double extra_seconds);
  void ring_bell();
  int name_of_rank(int rank) const;
  std::string missing(std::uint32_t epoch) const;
  [[noreturn]] void throw_stall(std::uint32_t epoch, std::string_view label,
                                double abort_seconds) const;

  NodeAllReduceState& control_;
  int rank_, size_;
  Deadlines deadlines_;
  double spin_seconds_;
  std::uint32_t epoch_ = 0;
  std::vector<int> names_;
  std::function<void(std::string_view)> watch_;
};

// A rank that waits for its leader, which waits for other nodes, waits longer than the leader: the
// leader knows which rank did not come.
constexpr double kLeaderSeconds = 5;

// Polls this long where every rank has a core of its own.
constexpr double kSpinMicroseconds = 200;

}  // namespace paceline

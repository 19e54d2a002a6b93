// All-reduce among the ranks of one node, in memory that all of them can access.
//
// A *part* is one rank's copy of the data. A *slice* is the range of elements that one rank
// reduces. After a barrier, every rank sums its slice over all parts, in rank order, and writes the
// sum to every part. A second barrier ends the collective. One rank reads and writes each element
// once, so the time is that of a memory copy, and every rank gets the same bits. Used by `mirrored`
// (parts in one process), `ring` and `mpi-ring` (parts in a shared file).
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

// The state that all ranks share. All zero is a valid initial state. It lives in process memory or
// in a shared file, so it contains only lock-free atomics.
struct NodeAllReduceState {
  struct alignas(64) Flag {
    std::atomic<std::uint32_t> epoch;
  };
  std::array<Flag, kMaxTeam> arrived;
  alignas(64) std::atomic<std::uint32_t> sleepers;
  // Futex word: incremented when a rank arrives while others sleep.
  std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> aborted;  // 1 + the rank that aborted
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

class NodeAllReduce {
 public:
  // `control` outlives the object. `spin_microseconds`: how long a wait polls before it sleeps; 0
  // if ranks share cores. `names`: rank numbers for error messages, if they differ from the ranks
  // here.
  NodeAllReduce(NodeAllReduceState& control, int rank, int size, Deadlines deadlines,
                double spin_microseconds, std::vector<int> names = {});

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Registers a function that each wait calls every 50 ms with its label. It may throw to end the
  // wait, e.g. because another process is gone.
  void watch(std::function<void(std::string_view label)> watch) { watch_ = std::move(watch); }

  // Throws stall past the deadline plus `extra_seconds`, naming the missing ranks, and peer_lost
  // after an abort. Does not allocate unless it throws.
  void barrier(std::string_view label, double extra_seconds = 0);

  // parts[r] is rank r's copy of `count` elements, aligned to the element type.
  void all_reduce(std::span<std::byte* const> parts, std::size_t count, DType type,
                  std::string_view label);

  // For an exchange with other nodes. reduce_to_first() leaves the node's sum in part 0.
  // copy_from_first() copies part 0 to all parts once the first rank arrives.
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

// Extra seconds for ranks that wait for their leader while it waits for other nodes. The leader
// times out first, and names the missing rank.
constexpr double kLeaderSeconds = 5;

// How long waits poll if every rank has a core of its own.
constexpr double kSpinMicroseconds = 200;

}  // namespace paceline

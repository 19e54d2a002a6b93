// Ranks that are processes. The ranks of a node sum in memory that they share.
// The first rank of each node, its leader, exchanges the sums with the other leaders.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/transport/mesh.h"

namespace paceline {

// All-reduce among the ranks of one node, in memory that all of them can access.
//
// A *part* is one rank's copy of the data. A *slice* is the range of elements that one rank
// reduces. After a barrier, every rank sums its slice over all parts, in rank order, and writes the
// sum to every part. A second barrier ends the collective. One rank reads and writes each element
// once, so the time is that of a memory copy, and every rank gets the same bits. Used by `mirrored`
// (parts in one process), `ring` and `mpi-ring` (parts in a shared file).

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

struct NodeSetup {
  std::unique_ptr<Communicator> all;   // every rank: the control plane
  std::unique_ptr<Communicator> node;  // the ranks of this node in rank order; null: `all` are
  std::vector<int> names;              // the rank numbers of the node's ranks, for error messages
  Deadlines deadlines;
  double spin_microseconds = 0;  // see NodeAllReduce
  // Called every 50 ms of a wait in the node; may throw to end it. May be empty.
  std::function<void(std::string_view label)> watch = {};
};

class NodeCommunicator final : public Communicator {
 public:
  // Collective over all ranks. Null on all of them, with `setup` as it was, if the ranks of some
  // node cannot share memory.
  static std::unique_ptr<NodeCommunicator> make(NodeSetup& setup);

  // With several nodes, on every rank before the first sum: sums over the leaders, in their lane.
  // Null on ranks that lead no node.
  void connect_leaders(std::unique_ptr<Communicator> leaders) {
    leaders_ = std::move(leaders);
    has_leaders_ = true;
  }

  int rank() const override { return setup_.all->rank(); }
  int size() const override { return setup_.all->size(); }
  Memory allocate(std::size_t bytes) override;
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) override {
    setup_.all->broadcast(data, bytes, root);
  }
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    setup_.all->all_gather(mine, bytes, all);
  }
  void barrier() override;
  void abort(std::string_view why) noexcept override;

 private:
  NodeCommunicator(NodeSetup setup, std::unique_ptr<SharedParts> shared);
  void reduce_parts(std::span<std::byte* const> parts, std::size_t count, DType type,
                    std::string_view label);

  NodeSetup setup_;
  std::unique_ptr<SharedParts> shared_;  // first part: the state; then scratch in each
  std::unique_ptr<SharedParts> arena_;
  std::vector<std::byte*> scratch_;
  NodeAllReduce reduction_;
  std::unique_ptr<Communicator> leaders_;
  bool has_leaders_ = false;
  InlineLane leaders_lane_;
};

// Which ranks share a node.

struct NodeGroups {
  std::vector<int> mine;      // the ranks of this node, in order
  std::vector<int> leaders;   // the first rank of each node, in order
  bool has_cpu_each = false;  // the ranks of this node may use at least one CPU each

  std::size_t nodes() const { return leaders.size(); }
};

// Collective. By find_node() of each rank.
NodeGroups find_nodes(Communicator& all);

}  // namespace paceline

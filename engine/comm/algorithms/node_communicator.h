// Ranks that are processes. The ranks of a node sum in memory that they share (node_all_reduce.h).
// The first rank of each node, its leader, exchanges the sums with the other leaders.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/comm/algorithms/node_all_reduce.h"
#include "engine/comm/communicator.h"
#include "engine/comm/group.h"
#include "engine/comm/transport/shared_parts.h"

namespace paceline {

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

}  // namespace paceline

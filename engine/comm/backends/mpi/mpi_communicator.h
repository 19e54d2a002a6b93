// Ranks as processes. Inside a node they reduce in the node's shared window. Between nodes, the
// leaders (the first rank of each node) reduce the nodes' sums in a ring of MPI messages.
#pragma once

#include <memory>
#include <vector>

#include "engine/comm/algorithms/node_all_reduce.h"
#include "engine/comm/algorithms/ring.h"
#include "engine/comm/backends/mpi/mpi_wire.h"
#include "engine/comm/backends/mpi/window.h"
#include "engine/comm/backends/mpi/world.h"
#include "engine/comm/communicator.h"

namespace paceline::mpi {

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(World& world, const Deadlines& deadlines);

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  Memory allocate(std::size_t bytes) override;
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) override;
  void all_gather(const void* mine, std::size_t bytes, void* all) override;
  void barrier() override;
  void abort(std::string_view why) noexcept override;

 protected:
  const World& world() const { return world_; }

 private:
  bool one_node() const { return world_.nodes() == 1; }
  void reduce_parts(std::span<std::byte* const> parts, std::size_t count, DType type,
                    std::string_view label);
  void broadcast_on_node(std::byte* data, std::size_t bytes, int root);
  void gather_on_node(const std::byte* mine, std::size_t bytes, std::byte* all);

  World& world_;
  Patience patience_;
  Window control_;  // NodeAllReduceState, in the leader's part
  Window scratch_;  // for data outside of the arena
  std::unique_ptr<Window> arena_;
  NodeAllReduce reduction_;
  std::unique_ptr<MpiWire> wire_;  // of leaders, with several nodes
  std::unique_ptr<Ring> ring_;
};

}  // namespace paceline::mpi

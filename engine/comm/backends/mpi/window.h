// A node's MPI-3 shared window: one part per rank, and every rank can access all parts.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/comm/backends/mpi/world.h"

namespace paceline::mpi {

class Window {
 public:
  // Collective over the node. `bytes` is the size of this rank's part. Each part starts on a page
  // boundary, is zeroed, and is first touched by its rank, so that it lies on the rank's NUMA node.
  // Throws usage with a cure if the node has too little shared memory.
  Window(const World& world, std::size_t bytes, const Patience& patience);
  ~Window();  // collective; does nothing if the world is failing
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  std::size_t bytes() const { return bytes_; }
  std::byte* part(int node_rank) const { return parts_[static_cast<std::size_t>(node_rank)]; }
  std::byte* mine() const { return part(world_.node_rank()); }
  std::span<std::byte* const> parts() const { return parts_; }
  bool holds(const void* data, std::size_t bytes) const;  // within this rank's part

 private:
  void check_room_on_node(const Patience& patience) const;
  void find_parts();

  const World& world_;
  std::size_t bytes_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> parts_;
};

}  // namespace paceline::mpi

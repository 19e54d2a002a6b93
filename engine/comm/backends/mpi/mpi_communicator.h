// Ranks of an MPI communicator. Sums are MPI_Allreduce; the control plane is non-blocking calls
// that are polled, so that deadlines hold.
#pragma once

#include <functional>
#include <memory>

#include "engine/comm/backends/mpi/all_reduce.h"
#include "engine/comm/backends/mpi/world.h"
#include "engine/comm/communicator.h"

namespace paceline::mpi {

class MpiCommunicator final : public Communicator {
 public:
  // `ranks` belongs to the world.
  MpiCommunicator(World& world, MPI_Comm ranks, const Deadlines& deadlines, OnTimeout on_timeout);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Memory allocate(std::size_t) override { return {}; }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) override;
  void all_gather(const void* mine, std::size_t bytes, void* all) override;
  void barrier() override;
  void abort(std::string_view) noexcept override { world_.fail(); }

 private:
  World& world_;
  MPI_Comm ranks_;
  int rank_ = 0, size_ = 1;
  WaitDeadline deadline_;
  AllReduce all_reduce_;
};

}  // namespace paceline::mpi

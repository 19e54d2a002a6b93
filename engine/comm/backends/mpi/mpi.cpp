// One process a replica; MPI_Allreduce sums.
#include <fmt/format.h>

#include "engine/comm/backends/mpi/mpi_backend.h"

namespace paceline {

namespace {

class MpiAllReduceBackend final : public mpi::MpiBackend {
 public:
  std::string_view name() const override { return "mpi"; }

 protected:
  std::unique_ptr<Communicator> connect_in(mpi::World& world,
                                           const Membership& membership) override {
    const RankGroup group = membership.group();
    const MPI_Comm ranks = membership.only.empty() ? world.all() : world.split(group.rank >= 0);
    if (ranks == MPI_COMM_NULL) return nullptr;
    if (group.size() > 1) component_ = mpi::all_reduce_component(ranks);
    return std::make_unique<mpi::MpiCommunicator>(world, ranks, membership.deadlines,
                                                  mpi::abort_job(world, membership));
  }
  std::string sum() const override {
    return component_.empty() ? "MPI_Allreduce"
                              : fmt::format("MPI_Allreduce of component {}", component_);
  }

 private:
  std::string component_;
};

}  // namespace

std::unique_ptr<Backend> make_mpi_backend() {
  return std::make_unique<MpiAllReduceBackend>();
}

}  // namespace paceline

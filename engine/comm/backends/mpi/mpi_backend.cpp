#include <fmt/format.h>

#include <cstdlib>

#include "engine/comm/algorithms/hierarchical.h"
#include "engine/comm/backends/mpi/mpi_communicator.h"
#include "engine/comm/checks/stall_monitor.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline::mpi {

namespace {

constexpr char kStartCure[] =
    "see whether all ranks were started, and whether the launcher's PMI is this MPI's (srun "
    "--mpi=list)";

class MpiAllReduceBackend final : public MpiBackend {
 public:
  std::string_view name() const override { return "mpi"; }

 protected:
  std::unique_ptr<Communicator> connect_in(World& world, const Membership& membership) override {
    const RankGroup group = membership.group();
    const MPI_Comm ranks = membership.only.empty()
                               ? world.all()
                               : world.split(group.rank < 0 ? std::nullopt : std::optional(0));
    if (ranks == MPI_COMM_NULL) return nullptr;
    if (group.size() > 1) component_ = all_reduce_component(ranks);
    std::function<void()> select;
    if (membership.gpus != nullptr && group.size() > 1 && takes_gpu_memory(ranks)) {
      select = [gpus = membership.gpus] { gpus->select(0); };
    }
    takes_gpu_memory_ = select != nullptr;
    return std::make_unique<MpiCommunicator>(world, ranks, membership.deadlines,
                                             abort_job(world, membership), std::move(select));
  }
  std::string sum() const override {
    return (component_.empty() ? "MPI_Allreduce" : "MPI_Allreduce of component " + component_) +
           (takes_gpu_memory_ ? ", which takes GPU memory" : "");
  }

 private:
  std::string component_;
  bool takes_gpu_memory_ = false;
};

}  // namespace

Support MpiBackend::serves(const Membership& membership) const {
  if (const Support support = serves_one_replica_a_task(membership, name()); !support) {
    return support;
  }
  // Open MPI takes its rank from PMIx only; a step without it is N jobs of one rank.
  if (membership.process.evidence == "Slurm step" && membership.process.size > 1 &&
      library_version().starts_with("Open MPI")) {
    return Support::no(
        fmt::format("srun started {} processes that Open MPI cannot join: start "
                    "them with srun --mpi=pmix, or with mpirun",
                    membership.process.size));
  }
  return Support::yes();
}

std::vector<std::unique_ptr<Communicator>> MpiBackend::connect(const Membership& membership) {
  {
    const StallMonitor::Call starting(membership.stall_monitor, "MPI_Init", kStartCure);
    world_ = std::make_unique<World>(membership.process, membership.ranks_a_task);
  }
  std::vector<std::unique_ptr<Communicator>> communicators;
  auto mine = connect_in(*world_, membership);
  if (mine) communicators.push_back(std::move(mine));
  return communicators;
}

std::unique_ptr<Communicator> MpiBackend::connect_group(const Membership& membership,
                                                        const RankGroup& group, std::string_view) {
  const MPI_Comm members =
      world_->split(group.rank < 0 ? std::nullopt : std::optional(group.names.front()));
  if (members == MPI_COMM_NULL) return nullptr;
  return std::make_unique<MpiCommunicator>(*world_, members, membership.deadlines,
                                           abort_job(*world_, membership));
}

std::string MpiBackend::description() const {
  if (!world_) return library_version();
  return fmt::format("{}, {} ranks on {}, {}", library_version(), world_->size(),
                     counted(world_->nodes(), "node"), sum());
}

OnTimeout abort_job(const World& world, const Membership& membership) {
  return [&world, membership](const std::string& label) {
    Error error = timeout_error("MPI_Allreduce", membership.deadlines, membership.control, label);
    error.on_rank(world.name());
    if (membership.on_fatal_error) membership.on_fatal_error(error);
    MPI_Abort(MPI_COMM_WORLD, exit_code(error.kind()));
    std::abort();
  };
}

}  // namespace paceline::mpi

namespace paceline {

// One process a replica; MPI_Allreduce sums.
std::unique_ptr<Backend> make_mpi_backend() {
  return std::make_unique<mpi::MpiAllReduceBackend>();
}

}  // namespace paceline

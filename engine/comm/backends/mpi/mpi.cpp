// One process a replica, started by mpirun or srun.
#include <fmt/format.h>

#include <memory>

#include "engine/comm/backend.h"
#include "engine/comm/backends/mpi/flat_communicator.h"
#include "engine/comm/backends/mpi/mpi_communicator.h"
#include "engine/comm/checks/stall_monitor.h"
#include "engine/launch/shared_memory.h"

namespace paceline {

namespace {

constexpr char kStartCure[] =
    "see whether all ranks were started, and whether the launcher's PMI is this MPI's (srun "
    "--mpi=list)";

class MpiBackend final : public Backend {
 public:
  std::string_view name() const override { return flat_ ? "mpi+flat" : "mpi"; }

  Support serves(const Membership& membership) const override {
    if (membership.replicas_here != 1) {
      return Support::no(
          fmt::format("backend mpi needs one task per replica, but this task has {} replicas: "
                      "start one task for each, or use mirrored",
                      membership.replicas_here));
    }
    // Open MPI takes its rank from PMIx only; a step without it is N jobs of one rank.
    if (membership.process.evidence == "Slurm step" && membership.process.size > 1 &&
        mpi::library_version().starts_with("Open MPI")) {
      return Support::no(
          fmt::format("srun started {} processes that Open MPI cannot join: start "
                      "them with srun --mpi=pmix, or with mpirun",
                      membership.process.size));
    }
    return Support::yes();
  }

  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    {
      const StallMonitor::Call starting(membership.stall_monitor, "MPI_Init", kStartCure);
      world_ = std::make_unique<mpi::World>(membership.process, membership.ranks_a_task);
    }
    deadlines_ = membership.deadlines;
    last_words_ = membership.last_words;
    std::vector<std::unique_ptr<Communicator>> communicators;
    if (flat_) {
      communicators.push_back(std::make_unique<mpi::FlatCommunicator>(*world_, membership.deadlines,
                                                                      membership.last_words));
    } else {
      communicators.push_back(
          std::make_unique<mpi::MpiCommunicator>(*world_, membership.deadlines));
    }
    return communicators;
  }

  Baseline baseline() override {
    if (flat_ || world_->size() == 1) return {};
    Baseline baseline{"MPI_Allreduce", {}};
    baseline.communicators.push_back(
        std::make_unique<mpi::FlatCommunicator>(*world_, deadlines_, last_words_));
    return baseline;
  }

  bool flatten() override {
    flat_ = true;
    return true;
  }

  std::string library() const override { return mpi::library_version(); }

  std::string description() const override {
    if (!world_) return mpi::library_version();
    const std::string ranks =
        fmt::format("{}, {} ranks on {} node{}", mpi::library_version(), world_->size(),
                    world_->nodes(), world_->nodes() == 1 ? "" : "s");
    if (flat_) return ranks + ", MPI_Allreduce";
    return fmt::format("{}, shared window in {}{}", ranks,
                       shared_memory_folder(environment_of_process()).string(),
                       world_->nodes() == 1 ? "" : ", ring of their leaders");
  }

 private:
  std::unique_ptr<mpi::World> world_;
  Deadlines deadlines_;
  std::function<void(const Error&)> last_words_;
  bool flat_ = false;
};

}  // namespace

std::unique_ptr<Backend> make_mpi_backend() {
  return std::make_unique<MpiBackend>();
}

}  // namespace paceline

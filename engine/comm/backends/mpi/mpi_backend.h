// The common part of the backends on MPI: whether MPI can serve, and joining its world.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/comm/backends/mpi/mpi_communicator.h"

namespace paceline::mpi {

class MpiBackend : public Backend {
 public:
  Support serves(const Membership& membership) const override;
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) final;
  std::string library() const override { return library_version(); }
  std::string description() const final;

 protected:
  // This process's communicator; null if it is not to be connected. Collective over the world.
  virtual std::unique_ptr<Communicator> connect_in(World& world, const Membership& membership) = 0;
  // How the ranks sum, after "Open MPI v4.1.4, 4 ranks on 2 nodes, ".
  virtual std::string sum() const = 0;

 private:
  std::unique_ptr<World> world_;
};

// Ends the job of a membership when MPI_Allreduce does not return: writes the reason with the late
// ranks, if a store knows them, then calls MPI_Abort.
OnTimeout abort_job(const World& world, const Membership& membership);

}  // namespace paceline::mpi

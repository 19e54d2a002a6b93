// Who am I: rank, world size and node, from what the launcher left in the environment.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace paceline {

// The environment as a value, so that tests can make one. of_process() copies the real one.
using Environment = std::map<std::string, std::string>;
Environment environment_of_process();

struct Place {
  int rank = 0, size = 1;              // of tasks (processes)
  int local_rank = 0, local_size = 1;  // among the tasks of this node
  int node = 0, nodes = 1;
  std::string evidence = "alone";      // "Open MPI (OMPI_COMM_WORLD_RANK)", "Slurm step", ...
  bool launched = false;               // a launcher started us, alone or with others
};

// Evidence in this order: RANK/WORLD_SIZE/LOCAL_RANK (torchrun), OMPI_COMM_WORLD_*, PMIX/PMI,
// MPICH's MPI_LOCALRANKID with PMI_RANK, PALS, Slurm step variables; else alone. Throws usage,
// with the cure, where sources disagree: SLURM_PROCID is never taken under mpirun.
Place find_place(const Environment& environment);

// What MPI itself says, cross-checked: throws usage with the cure ("--mpi=pmix") where a launcher
// started N tasks and MPI sees 1 (N singletons).
void check_against_mpi(const Place& place, int mpi_rank, int mpi_size);

}  // namespace paceline

// Who am I: rank, world size and node, from what the launcher left in the environment.
#pragma once

#include <string>

#include "engine/core/environment.h"

namespace paceline {

struct ProcessRank {
  int rank = 0, size = 1;              // of tasks (processes)
  int local_rank = 0, local_size = 1;  // among the tasks of this node
  // Launchers of MPI do not number the nodes: there, these two assume equal, block-wise filled
  // nodes, and are for the log only; the mpi backend asks MPI.
  int node = 0, nodes = 1;
  std::string evidence = "alone";  // "Open MPI (OMPI_COMM_WORLD_RANK)", "Slurm step", ...
  bool launched = false;           // a launcher started us, alone or with others
};

// Evidence in this order: RANK/WORLD_SIZE/LOCAL_RANK (torchrun), OMPI_COMM_WORLD_*, PALS, PMI
// (MPICH and its kin, with MPI_LOCALRANKID), PMIX_RANK, Slurm step variables; else alone. Throws
// usage, with the cure, where two launchers disagree or one is incomplete.
//
// Slurm's variables count only inside a step and only where no other launcher's rank is set: in a
// batch shell SLURM_PROCID is 0, and under mpirun it numbers mpirun's helpers, not the ranks.
ProcessRank find_process_rank(const Environment& environment);

// What MPI itself says, cross-checked: throws usage with the cure ("--mpi=pmix") where a launcher
// started N tasks and MPI sees 1 (N singletons).
void check_against_mpi(const ProcessRank& process, int mpi_rank, int mpi_size);

// Of this machine, as its kernel has it.
std::string host_name();

}  // namespace paceline

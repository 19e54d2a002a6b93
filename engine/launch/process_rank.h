// This process's rank, world size and node, from the launcher's environment variables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/core/environment.h"

namespace paceline {

struct ProcessRank {
  int rank = 0, size = 1;              // in tasks (processes)
  int local_rank = 0, local_size = 1;  // among the tasks of this node
  // MPI launchers do not number the nodes. Then these assume equally and block-wise filled nodes,
  // and are for the log only. The mpi backend asks MPI.
  int node = 0, nodes = 1;
  std::string evidence = "alone";  // "Open MPI (OMPI_COMM_WORLD_RANK)", "Slurm step", ...
  bool launched = false;           // started by a launcher, with or without other tasks
};

// Looks for evidence in this order: RANK/WORLD_SIZE/LOCAL_RANK (torchrun), OMPI_COMM_WORLD_*, PALS,
// Flux, LSF's jsrun, PMI (MPICH and derivatives, with MPI_LOCALRANKID), PMIX_RANK, Slurm step
// variables; else a single process. PBS starts ranks by one of these. Throws usage with a cure if
// two launchers disagree or one is incomplete.
//
// Slurm's variables count only inside a step, and only without another launcher's rank: in a batch
// shell SLURM_PROCID is 0, and under mpirun it numbers mpirun's helpers instead of ranks.
ProcessRank find_process_rank(const Environment& environment);

// "PBS job 4711.server"; "Slurm job 12, heterogeneous of 2 components". Empty: in no job.
std::string describe_job(const Environment& environment);

// Compares with what MPI reports. Throws usage with a cure ("--mpi=pmix") if a launcher started N
// tasks but MPI sees 1 (N singletons).
void check_against_mpi(const ProcessRank& process, int mpi_rank, int mpi_size);

// This machine's host name, from the kernel.
std::string host_name();

// A number that the ranks of a node have in common: they share the kernel, /dev/shm and the
// network, whatever their hosts are called. Containers of one machine may have these each for
// itself. Copies of a virtual machine may have them in common, so whoever opens another rank's
// memory checks that it is the right one.
std::uint64_t find_node(int rank);

// For tests: this many consecutive ranks count as a node, so that one machine emulates several.
inline constexpr char kRanksPerNodeVariable[] = "PACELINE_TEST_RANKS_PER_NODE";
std::optional<int> test_ranks_per_node();  // throws usage

// The run's own directory inside a job, which contains everything that belongs to the run.

// Under Slurm $SLURM_SUBMIT_DIR/<SLURM_ARRAY_JOB_ID>_<SLURM_ARRAY_TASK_ID>, without an array
// $SLURM_SUBMIT_DIR/<SLURM_JOB_ID>, which is the same after a requeue. Empty elsewhere, and if the
// ids are not numbers. Does not create it.
std::optional<std::filesystem::path> run_directory_of_job(const Environment& environment);

}  // namespace paceline

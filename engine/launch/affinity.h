// Assigns CPUs to replicas and tasks.
#pragma once

#include <string>
#include <vector>

#include "engine/launch/process_rank.h"
#include "engine/launch/topology.h"

namespace paceline {

// One set of `cpus_each` CPUs for each of `parts`. `usable` is in topology order, so sets are
// contiguous. While there are enough cores, a set takes one hardware thread per core; beyond that,
// all threads, those of a core together. Past the end it wraps around and sets share CPUs. That is
// oversubscription, or the mask belongs to this task alone and any part of it is right. Throws
// usage if one set does not fit into `usable`.
std::vector<CpuSet> split_cpus(const std::vector<Cpu>& usable, int parts, int cpus_each);

// The CPUs of this task: the local_rank-th part of the mask. Correct for a mask that all tasks of
// the node share (Paceline's mpirun, --bind-to none), and for one that belongs to this task alone
// (srun, --bind-to core).
CpuSet cpus_of_task(const std::vector<Cpu>& usable, const ProcessRank& process, int cpus_per_task);

// Binds the calling thread; threads started later inherit the binding. Throws internal.
void bind_this_thread(const CpuSet& cpus);

// "0-3,8"
std::string format_cpus(const CpuSet& cpus);

}  // namespace paceline

// Which CPUs a replica or task runs on.
#pragma once

#include <string>
#include <vector>

#include "engine/launch/process_rank.h"
#include "engine/launch/topology.h"

namespace paceline {

// One set of `cpus_each` CPUs for each of `parts`. `usable` is in topology order, so that a set is
// contiguous. While there are cores enough, a set takes one hardware thread a core; past that,
// all threads, a core's together. Past the end it wraps round: the sets then share CPUs, which is
// oversubscription, or the mask is this task's own and every part of it is right. Throws usage
// if one set does not fit into `usable`.
std::vector<CpuSet> split_cpus(const std::vector<Cpu>& usable, int parts, int cpus_each);

// The CPUs of this task: the local_rank-th part of the mask. Right for a mask that all tasks of
// the node share (our own mpirun, --bind-to none) and for one that the launcher made for this
// task alone (srun, --bind-to core).
CpuSet cpus_of_task(const std::vector<Cpu>& usable, const ProcessRank& process, int cpus_per_task);

// Binds the calling thread; threads it starts from then on inherit it. Throws internal.
void bind_this_thread(const CpuSet& cpus);

// "0-3,8"
std::string format_cpus(const CpuSet& cpus);

}  // namespace paceline

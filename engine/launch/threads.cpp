#include "engine/launch/threads.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/launch/affinity.h"

namespace paceline {

namespace {

void check_at_least(int value, int least, const char* option) {
  if (value >= least) return;
  throw Error(ErrorKind::usage, fmt::format("{} {}", option, value), "",
              fmt::format("give at least {}", least));
}

}  // namespace

ThreadPlan plan_threads(int cpus_per_replica, const ThreadRequest& request) {
  check_at_least(cpus_per_replica, 1, "CPUs per replica");
  check_at_least(request.compute.value_or(1), 1, "compute threads");
  check_at_least(request.input.value_or(0), 0, "input threads");
  check_at_least(request.comm.value_or(0), 0, "communication threads");
  ThreadPlan plan;
  plan.input = request.input.value_or(0);
  plan.comm = request.comm.value_or(0);
  plan.compute = request.compute.value_or(cpus_per_replica - plan.input - plan.comm);
  if (plan.compute >= 1 && plan.total() <= cpus_per_replica) return plan;
  const int compute = plan.compute >= 1 ? plan.compute : 1;
  const int wanted = compute + plan.input + plan.comm;
  throw Error(
      ErrorKind::usage,
      fmt::format("{} compute + {} input + {} communication threads on {} CPU{} a replica", compute,
                  plan.input, plan.comm, cpus_per_replica, cpus_per_replica == 1 ? "" : "s"),
      "", fmt::format("use fewer threads, or give each replica {} CPUs", wanted));
}

void check_mask(const CpuSet& mask, int replicas, int cpus_per_replica, bool oversubscribe) {
  const int cpus = static_cast<int>(mask.size());
  if (cpus_per_replica > cpus) {
    throw Error(ErrorKind::usage,
                fmt::format("a replica needs {} CPUs, but the affinity mask has {} ({})",
                            cpus_per_replica, cpus, format_cpus(mask)),
                "",
                fmt::format("use fewer with --cpus-per-task, or start with a wider mask (mpirun "
                            "--bind-to none or --map-by slot:PE={0}, srun --cpus-per-task={0})",
                            cpus_per_replica));
  }
  if (replicas * cpus_per_replica <= cpus || oversubscribe) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} replicas of {} CPU{} each on {} usable CPU{} ({})", replicas,
                          cpus_per_replica, cpus_per_replica == 1 ? "" : "s", cpus,
                          cpus == 1 ? "" : "s", format_cpus(mask)),
              "", "use fewer, or add --oversubscribe: such runs are excluded from statistics");
}

}  // namespace paceline

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/topology.h"

namespace paceline {

namespace {

void check_at_least(int value, int least, const char* option) {
  if (value >= least) return;
  throw usage_error(fmt::format("{} {}", option, value), "",
                    fmt::format("give at least {}", least));
}

std::vector<Cpu> one_thread_a_core(const std::vector<Cpu>& cpus) {
  std::vector<Cpu> firsts;
  for (const Cpu& cpu : cpus) {
    if (firsts.empty() || firsts.back().core != cpu.core) firsts.push_back(cpu);
  }
  return firsts;
}

}  // namespace

ThreadPlan plan_threads(int cpus_per_replica, const ThreadRequest& request) {
  check_at_least(cpus_per_replica, 1, "CPUs per replica");
  check_at_least(request.compute.value_or(1), 1, "compute threads");
  check_at_least(request.input.value_or(0), 0, "input threads");
  check_at_least(request.comm.value_or(0), 0, "communication threads");
  ThreadPlan plan{.input = request.input.value_or(0), .comm = request.comm.value_or(0)};
  plan.compute = request.compute.value_or(cpus_per_replica - plan.input - plan.comm);
  if (plan.compute >= 1 && plan.total() <= cpus_per_replica) return plan;
  const int compute = plan.compute >= 1 ? plan.compute : 1;
  const int wanted = compute + plan.input + plan.comm;
  throw usage_error(fmt::format("{} compute + {} input + {} communication threads on {} a replica",
                                compute, plan.input, plan.comm, counted(cpus_per_replica, "CPU")),
                    "", fmt::format("use fewer threads, or give each replica {} CPUs", wanted));
}

void check_mask(const CpuSet& mask, int replicas, int cpus_per_replica, bool oversubscribe) {
  const int cpus = static_cast<int>(mask.size());
  if (cpus_per_replica > cpus) {
    throw usage_error(
        fmt::format("a replica needs {} CPUs, but the affinity mask has {} ({})", cpus_per_replica,
                    cpus, format_cpus(mask)),
        "",
        fmt::format("use fewer with --cpus-per-task, or start with a wider mask (mpirun "
                    "--bind-to none or --map-by slot:PE={0}, srun --cpus-per-task={0})",
                    cpus_per_replica));
  }
  if (replicas * cpus_per_replica <= cpus || oversubscribe) return;
  throw usage_error(
      fmt::format("{} replicas of {} each on {} ({})", replicas, counted(cpus_per_replica, "CPU"),
                  counted(cpus, "usable CPU"), format_cpus(mask)),
      "", "use fewer, or add --oversubscribe: such runs are excluded from statistics");
}

std::vector<CpuSet> split_cpus(const std::vector<Cpu>& usable, int parts, int cpus_each,
                               const std::vector<int>& numa) {
  if (cpus_each < 1 || static_cast<std::size_t>(cpus_each) > usable.size()) {
    throw usage_error(
        fmt::format("one task needs {} CPUs, but only {} are usable", cpus_each, usable.size()), "",
        "use a smaller --cpus-per-task, or start with a wider affinity mask");
  }
  const auto each = static_cast<std::size_t>(cpus_each);
  const std::vector<Cpu> firsts = one_thread_a_core(usable);
  const bool cores_enough = static_cast<std::size_t>(parts) * each <= firsts.size();
  const std::vector<Cpu>& order = cores_enough ? firsts : usable;
  std::vector<CpuSet> sets(static_cast<std::size_t>(parts));
  if (sets.size() * each > order.size()) {
    for (std::size_t i = 0; i < sets.size() * each; ++i) {
      sets[i / each].push_back(order[i % order.size()].id);
    }
  } else {
    std::vector<Cpu> left = order;
    const auto take = [&](CpuSet& set, int node) {
      std::vector<Cpu> rest;
      CpuSet taken;
      for (const Cpu& cpu : left) {
        const bool fits = taken.size() < each && (node == kAnyNuma || cpu.numa == node);
        fits ? taken.push_back(cpu.id) : rest.push_back(cpu);
      }
      if (taken.size() < each) return;
      set = std::move(taken);
      left = std::move(rest);
    };
    for (std::size_t part = 0; part < std::min(numa.size(), sets.size()); ++part) {
      if (numa[part] != kAnyNuma) take(sets[part], numa[part]);
    }
    for (CpuSet& set : sets) {
      if (set.empty()) take(set, kAnyNuma);
    }
  }
  for (CpuSet& set : sets) std::sort(set.begin(), set.end());
  return sets;
}

CpuSet cpus_of_task(const std::vector<Cpu>& usable, const ProcessRank& process, int cpus_per_task,
                    const std::vector<int>& numa) {
  const auto sets = split_cpus(usable, process.local_size, cpus_per_task, numa);
  return sets[static_cast<std::size_t>(process.local_rank)];
}

void bind_this_thread(const CpuSet& cpus) {
  const auto room = static_cast<std::size_t>(cpus.empty() ? 1 : cpus.back() + 1);
  cpu_set_t* mask = CPU_ALLOC(room);
  const std::size_t bytes = CPU_ALLOC_SIZE(room);
  CPU_ZERO_S(bytes, mask);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, mask);
  const int result = sched_setaffinity(0, bytes, mask);
  const int cause = errno;
  CPU_FREE(mask);
  if (result == 0) return;
  throw usage_error(fmt::format("the process cannot be bound to CPUs {}: {}", format_cpus(cpus),
                                std::strerror(cause)),
                    "sched_setaffinity", "check the affinity mask with paceline doctor");
}

std::string format_cpus(const CpuSet& cpus) {
  return join(number_ranges(cpus), ",");
}

}  // namespace paceline

// Runs of a study as job arrays: an array has one resource request, so runs are grouped by it.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "results/layout.h"
#include "slurm/needs.h"
#include "sweeps/expansion.h"
#include "sweeps/schedule.h"

namespace paceline {

struct JobShape {
  int nodes = 1;
  int gpus = 0;  // in all; 0 where replicas are cores
  int ntasks = 1, cpus_per_task = 1;
  friend bool operator==(const JobShape&, const JobShape&) = default;
  friend bool operator<(const JobShape& a, const JobShape& b) {
    return std::tie(a.nodes, a.gpus, a.ntasks, a.cpus_per_task) <
           std::tie(b.nodes, b.gpus, b.ntasks, b.cpus_per_task);
  }

  int tasks_per_node() const { return (ntasks + nodes - 1) / nodes; }
  int gpus_per_node() const { return gpus / nodes; }
  int cpus() const { return ntasks * cpus_per_task; }
  std::string name() const;  // "1n2t4c2g": nodes, tasks, CPUs of each, GPUs
  std::string text() const;  // "1 node, 2 tasks of 4 CPUs, 2 GPUs"
};

JobShape shape_of(const Layout& layout);

struct JobArray {
  std::string name;  // the shape's; "1n2t4c2g-2of3" where it was split
  JobShape shape;
  std::vector<ScheduledRun> runs;  // element i of the array is runs[i]
  Need need;                       // of one element: the most that any needs

  double hours() const { return static_cast<double>(runs.size()) * need.minutes / 60; }
  double gpu_hours() const { return hours() * shape.gpus; }
  double cpu_hours() const { return hours() * shape.cpus(); }
};

// `runs` in the order in which each array gets its own; `needs` go with `runs`. Arrays come from
// small shapes to large ones, of at most `most_elements` each.
std::vector<JobArray> group_runs(const std::vector<PlannedPoint>& points,
                                 const std::vector<ScheduledRun>& runs,
                                 const std::vector<Need>& needs, int most_elements);

}  // namespace paceline

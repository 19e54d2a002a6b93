// Groups the runs of a study into job arrays by resource request, of which an array has only one.
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
  int gpus = 0;  // total; 0 if replicas are cores
  int ntasks = 1, cpus_per_task = 1;
  friend bool operator==(const JobShape&, const JobShape&) = default;
  friend bool operator<(const JobShape& a, const JobShape& b) {
    return std::tie(a.nodes, a.gpus, a.ntasks, a.cpus_per_task) <
           std::tie(b.nodes, b.gpus, b.ntasks, b.cpus_per_task);
  }

  int tasks_per_node() const { return (ntasks + nodes - 1) / nodes; }
  int gpus_per_node() const { return gpus / nodes; }
  int cpus() const { return ntasks * cpus_per_task; }
  std::string name() const;  // "1n2t4c2g": nodes, tasks, CPUs per task, GPUs
  std::string text() const;  // "1 node, 2 tasks of 4 CPUs, 2 GPUs"
};

JobShape make_shape(const Layout& layout);

struct JobArray {
  std::string name;  // the shape's name; "1n2t4c2g-2of3" if it was split
  JobShape shape;
  std::vector<ScheduledRun> runs;  // element i runs runs[i]
  Need need;                       // maximum over its elements

  double hours() const { return static_cast<double>(runs.size()) * need.minutes / 60; }
  double gpu_hours() const { return hours() * shape.gpus; }
  double cpu_hours() const { return hours() * shape.cpus(); }
};

// Keeps the order of `runs` in each array. `needs` corresponds to `runs`. Arrays are sorted from
// small to large shapes, with at most `most_elements` each.
std::vector<JobArray> group_runs(const std::vector<PlannedPoint>& points,
                                 const std::vector<ScheduledRun>& runs,
                                 const std::vector<Need>& needs, int most_elements);

}  // namespace paceline

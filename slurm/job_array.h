// Groups the runs of a study into job arrays by resource request, of which an array has only one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "results/parameters.h"
#include "slurm/needs.h"
#include "sweeps/expansion.h"
#include "sweeps/inventory.h"

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

// Parses job ids of arrays and plain jobs, as Slurm prints them.

// The array elements in a text: "5" (none), "5_3", "5_[2-7%2]", "5_[1,4,6-8]", "5_[0-20:4]".
struct ArrayId {
  std::int64_t job = 0;
  std::vector<int> elements;  // in the text's order; empty: a plain job, or the whole array
  int throttle = 0;           // "%2"; 0: none
  bool cut_short = false;     // "...": Slurm truncated the list
};

// Empty if the text is not a job id. Steps ("5_3.batch", "5.0") are not job ids.
std::optional<ArrayId> parse_array_id(std::string_view text);

// Parses the elements alone: "0-7%2", "1,4,6-8", "0-20:4", "3", as in sbatch --array and scontrol's
// ArrayTaskId.
bool parse_elements(std::string_view text, ArrayId& into);

// A points file: what the elements of an array run, one JSON list of words per line. Only paceline
// reads it, never a shell, so no text of a study can become a shell command.

// Without a line break. Throws usage for words that are not UTF-8.
std::string line_of_words(const std::vector<std::string>& words);

// The words of element `index`, in line index + 1. Throws input naming file and line if it does not
// exist or is not a list of words.
std::vector<std::string> words_of_element(const std::filesystem::path& file, std::size_t index);

}  // namespace paceline

// A series of growing numbers of replicas: what a plot draws as one line and a finding speaks of.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/row_facts.h"

namespace paceline {

struct SizeGroup {
  int gpus = 1;
  std::vector<const RowFacts*> rows;  // with a speed-up; not empty

  double mean_speed_up() const;
};

struct ScalingSeries {
  std::string name;               // backend, system, CPUs, axes: what sets it apart from the others
  std::vector<SizeGroup> groups;  // by gpus; includes one replica
  std::vector<int> gaps;          // sizes of the study's gaps that would stand here
};

// Base best: one series a system, of its fastest rows. Base matched: one a system, backend and
// set of axes, and with `by_cpus` also one a number of CPUs. Series of a single group, which show
// no scaling, are left out. None where a setting is the base.
std::vector<ScalingSeries> make_scaling_series(const Study& study, const Comparison& comparison,
                                               const std::vector<RowFacts>& facts, bool by_cpus);

}  // namespace paceline

// Groups runs into tables: one table per workload, precision and scaling type. If a sweep varies
// the amount of work (batch sizes, epochs), one table per amount. Studies without a common point
// are in no table together.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/evidence/evidence.h"
#include "analysis/study/scaling.h"
#include "results/expected_runs.h"

namespace paceline {

// Distinguishes a table from others of its workload: {"batch_per_replica", 64.0}, {"until",
// "test_accuracy=0.98"}, {"study", "quick"}, {"studies", "friday, monday"}. May be empty.
using Amount = std::variant<double, std::string>;
using Work = std::vector<std::pair<std::string, Amount>>;
std::string to_text(const Amount& amount);

struct StudyKey {
  std::string workload, precision, unit;
  std::string studies;  // "friday, monday", where others of the workload have no point of theirs
  Scaling scaling = Scaling::unknown;
  bool replicas_are_cores = false;
  bool only_rates = false;  // there are no times to compare
  Work work;

  auto operator<=>(const StudyKey&) const = default;
};

// Throws usage, naming records, if runs of one system hold nothing fixed and cannot be separated by
// what their sweep varied or by batch, epochs and steps. With `pooled`, studies stand together
// that are not of different programs of the user's own.
std::map<StudyKey, std::vector<Run>> grouped(std::vector<Run> runs, bool pooled = false);

// Also for plans and failed runs, whose records have fewer facts: a missing fact matches any work.
bool may_have(const Run& run, const Work& work);

}  // namespace paceline

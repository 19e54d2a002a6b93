// Which runs stand in one table: those of one workload, precision and scaling type. Where a sweep
// changes how much work a run does (batch sizes, epochs), each amount has a table of its own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/study/run.h"
#include "analysis/study/scaling.h"

namespace paceline {

// What sets a table apart from others of its workload: {"batch_per_replica", 64.0}, {"until",
// "test_accuracy=0.98"}, {"study", "quick"}; empty: nothing.
using Amount = std::variant<double, std::string>;
using Work = std::vector<std::pair<std::string, Amount>>;
std::string to_text(const Amount& amount);

struct StudyKey {
  std::string workload, precision;
  Scaling scaling = Scaling::unknown;
  bool replicas_are_cores = false;
  bool only_rates = false;  // there are no times to compare, as other types do
  Work work;

  auto operator<=>(const StudyKey&) const = default;
};

// Throws usage, naming records, where runs of one system hold nothing fixed and neither what their
// sweep varied nor one of batch, epochs and steps sets them apart.
std::map<StudyKey, std::vector<Run>> grouped(std::vector<Run> runs);

// Also of plans and of runs that failed, which say less: what they do not say they may have.
bool may_have(const Run& run, const Work& work);

// "gpus=2,decay_epochs=30,60" as names and values.
std::vector<std::pair<std::string, std::string>> named_values(std::string_view point);

}  // namespace paceline

// The scaling type of a set of runs: derived from what they hold fixed, never typed.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/study/run.h"

namespace paceline {

enum class Scaling {
  strong,        // total samples and global batch fixed
  fixed_epochs,  // total samples and batch per replica fixed
  to_goal,       // the goal and batch per replica fixed; how many samples that takes is a result
  weak,          // steps and batch per replica fixed
  one_size,      // every run has the same number of replicas
  unknown,       // the batch or what a run trains is not known (published pages)
};

std::string_view name_of(Scaling scaling);
// What is fixed, in words, for the legend.
std::string_view explanation_of(Scaling scaling);
// Times of runs that do unlike amounts of work cannot be compared; rates can.
bool compares_rates(Scaling scaling);

// Total samples count as fixed within one global batch an epoch, which is what dropping or
// rounding the last batch changes. Runs without a total (published rates) are judged by their
// batch, and by time times rate where they have both. Throws usage naming two records where nothing
// is held fixed.
Scaling scaling_of(const std::vector<const Run*>& runs);

// The same; none where it would throw.
std::optional<Scaling> scaling_if_any(const std::vector<const Run*>& runs);

}  // namespace paceline

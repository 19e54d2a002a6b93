// Whether a row may stand beside another: a faster training to a worse network is no speed-up, and
// an open interval is not equality. Every verb asks here.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/evidence/evidence.h"

namespace paceline {

// The gate's thresholds, too: half a point of test accuracy, 5 % of training loss.
inline constexpr double kAccuracyTolerance = 0.005, kLossTolerance = 0.05;

struct Standing {
  enum Answer { yes, no, cannot_tell };

  Answer answer = yes;
  std::string label;   // "lower accuracy", "accuracy unclear", "unequal work: ..."; empty: yes
  std::string values;  // "64.20 % beside 75.40 %", or those of each run
  bool has_far_runs = false;  // some runs, not all, are far below all of the other row's

  // It is no equal network: its speed-up is in brackets, and who chooses a row leaves it aside.
  bool is_barred() const { return answer == no || has_far_runs; }
  bool is_of_work() const { return answer == no && values.empty(); }
  // "cannot tell whether it trained as well: 94.5, 95.6 % beside 96.1, 96.3 %"; empty: it can.
  std::string doubt() const {
    return answer == cannot_tell ? "cannot tell whether it trained as well: " + values : "";
  }
};

// Work and quality. Compares test accuracies, or without them the training losses of the last
// epoch. With 3 runs or more each:
//   no: the mean is worse by more than the tolerance, and the 95 % interval of the difference
//       excludes 0, for all `tests` rows of a table together (Bonferroni);
//   yes: the difference is within the tolerance at 95 % (one-sided), or no run of the row is worse
//       than the base's best one by more than it;
//   cannot tell: else, and where some runs are far worse than all of the base's.
// Of fewer runs only the means are known: accuracies decide by them, losses by what is not a
// number. Yes, too, if it is not known, and for times to a goal, which both reached.
Standing stands_beside(const EvidencePoint& base, const EvidencePoint& row, std::size_t tests = 1);

// Each beside the one that trained best, for all pairs together: that one was selected. Of fewer
// than 3 runs, accuracies decide if they are far apart. Work is not asked.
std::vector<Standing> stand_together(const std::vector<const EvidencePoint*>& points);

// Of two programs that report unequal work at one point.
bool has_other_work(const EvidencePoint& base, const EvidencePoint& row);

}  // namespace paceline

// The scaling type of a set of runs, derived from what they hold fixed. Users never specify it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/evidence/run.h"
#include "analysis/statistics/statistics.h"

namespace paceline {

enum class Scaling {
  strong,        // total samples and global batch fixed
  fixed_epochs,  // total samples and batch per replica fixed
  to_goal,       // goal and batch per replica fixed; the number of samples is a result
  weak,          // steps and batch per replica fixed
  one_size,      // all runs have the same number of replicas
  same_work,     // only times are known, or that the work is fixed
  unknown,       // batch or amount of work unknown (published pages)
};

std::string_view to_string(Scaling scaling);
// What the type holds fixed, in words for the legend, or what one of the runs states of it.
std::string_view describe_scaling(Scaling scaling, const Run& run);
// "fixed", "grows", or nothing.
std::string stated_work(const Run& run);
// True if runs do different amounts of work: their rates can be compared, but not their times.
bool compares_rates(Scaling scaling);

// Total samples count as fixed within one global batch per epoch, the effect of dropping or
// rounding the last batch. Runs without a total (published rates) are judged by their batch, and by
// time times rate if they have both. Throws usage naming two records if nothing is fixed.
Scaling classify_scaling(const std::vector<const Run*>& runs);

// The same, but empty instead of an error.
std::optional<Scaling> scaling_if_any(const std::vector<const Run*>& runs);

// The fraction of Karp and Flatt; see SpeedUp::karp_flatt.

double karp_flatt(double speed_up, double replicas);
Estimate karp_flatt(const Estimate& speed_up, double replicas);

// Number of decimals for a fraction: three, or three significant digits for small ones. With 4096
// replicas, 0.0001 matters.
int fraction_digits(double fraction);
// No more than its interval leaves: two significant digits of the larger side.
int fraction_digits(const Estimate& fraction);

}  // namespace paceline

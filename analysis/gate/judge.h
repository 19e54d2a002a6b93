// The gate's judgement: has it got worse, by enough to matter, and beyond what noise does?
//
// Every quantity of every point is one check. Its change is the mean over pairs of runs that shared
// a round of one session, where there are such; else that of the means of sessions, since runs of
// one session share what that session's machine was like, and a session is then the unit of
// replication.
//   regression: worse by the threshold or more, and p < 0.05 with Holm's adjustment over all
//   checks; pass: worse by less than the threshold, and worse by twice the threshold excluded
//   (one-sided,
//         95 %), so that runs too few or too noisy to see anything never pass;
//   undecided: the rest; always with fewer than 3 runs, and with sessions of their own on both
//   sides
//         where the baseline has fewer than 3 sessions.
// Checks that did not pass are then made again with fresh runs of both sides, interleaved in one
// session (settle). These alone decide, so that choosing the suspects biases nothing, and Holm's
// adjustment goes over the suspects only.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/gate/side.h"
#include "analysis/statistics/statistics.h"

namespace paceline {

enum class Verdict { pass, regression, undecided };
std::string_view name_of(Verdict verdict);
int exit_code(Verdict verdict);  // 0, 1, 2

enum class Evidence {
  paired,    // runs that shared rounds
  sessions,  // means of sessions, 3 or more of the baseline
  runs,      // runs, of quantities that sessions do not sway
  apart,     // runs of too few sessions: shown, never decides
  none,      // one side has no runs that count
};
std::string_view name_of(Evidence evidence);

constexpr double kSignificance = 0.05;
constexpr std::size_t kFewestSessions = 3;

struct Check {
  std::string subject;
  Quantity quantity = Quantity::time;
  Verdict verdict = Verdict::undecided;
  Evidence evidence = Evidence::none;
  std::string reason;  // why not simply passed; of a pass: empty

  // Geometric or arithmetic means over what the change is of: rounds, sessions or runs. Runs of
  // rounds that only one side has are in neither, nor in the numbers of runs and sessions.
  std::optional<double> baseline, current;
  // Positive is worse: a share of the baseline for factors, else a difference.
  std::optional<double> change;
  std::optional<Interval> interval;  // of the change, 95 %
  double threshold = 0, p = 1, adjusted_p = 1;
  std::size_t baseline_runs = 0, current_runs = 0;
  std::size_t baseline_sessions = 0, current_sessions = 0;

  // After fresh runs: what the first ones said.
  bool is_fresh = false;
  std::optional<double> first_change;
};

struct Judgement {
  std::vector<Check> checks;          // by subject as the baseline has them, then by quantity
  std::vector<std::string> warnings;  // what flaws the runs; a sentence each, before all else
  std::vector<std::string> notes;     // a sentence each
  bool is_confirmed = false;          // settled by fresh runs

  Verdict verdict() const;  // regression if any check is; else undecided if any is; else pass
};

using CheckName = std::pair<std::string, Quantity>;  // subject, quantity

struct GateOptions {
  Thresholds thresholds = default_thresholds();
  std::set<Quantity> quantities;  // empty: all
  std::set<CheckName> only;       // empty: all
  bool one_spec = false;          // as match_subjects() has it
};

// Points are matched by parameters: equal but for those that only one side knows. Throws input
// where no point of the baseline is in the other.
Judgement judge(const Side& baseline, const Side& current, const GateOptions& options);

// What differs between the machines of both sides, a phrase each.
std::vector<std::string> unlike_machines(const Side& baseline, const Side& current);

// The checks that did not pass, as options for judging fresh runs of them.
GateOptions suspects_of(const Judgement& first, const GateOptions& options);

// Replaces the checks that did not pass by what fresh runs say of them.
void settle(Judgement& first, const Judgement& fresh);

}  // namespace paceline

// The gate's verdict: did performance get worse, by enough to matter and beyond the noise?
//
// Each quantity of each point is one check. Its change is the mean over pairs of runs that shared a
// round of a session. Without such pairs it is the change between means of sessions. Runs of one
// session share the machine's state, so the session is then the unit of replication.
//
//  - regression: worse by the threshold or more, and p < 0.05 with Holm's adjustment over all
//    checks;
//  - pass: worse by less than the threshold, and worse by twice the threshold is excluded (95 %,
//    one-sided), so that runs too few or too noisy to see anything never pass;
//  - undecided: the rest. Always with fewer than 3 runs, and where the sides share no session and
//    the baseline has fewer than 3 sessions.
//
// For the machine's quantities, runs on a busy machine and outliers are left aside (weigh.h).
// Outliers are weighed all the same: a build that hangs now and then is a slower one. With them,
//
//  - worse by the threshold or more in the mean is no pass. It is a regression if significantly
//  more
//    runs of the current side stand out (statistics/robust.h), with an adjustment of its own;
//  - a gate that goes on until it is decided passes times once it would have seen a build of which
//  a
//    tenth of the runs hang (95 %): after 29 rounds, or at its last round if that is earlier.
//
// Checks that did not pass are measured again with fresh runs of both sides, interleaved in one
// session (settle). Only the fresh runs decide, so selecting suspects causes no bias. Holm's
// adjustment then covers the suspects only.
//
// A gate that goes on until it is decided looks after every round, at all rounds so far. Intervals
// and p of paired rounds are then anytime-valid, of the machine's quantities also where rounds
// resemble their neighbours (statistics/anytime.h), and variances are not moderated. p is
// below 0.05 at any look with probability 5 % at most, and Holm's adjustment keeps that for all
// checks together: it holds for any dependence, and for the smallest p of all looks. That of runs
// that stand out is below 0.05 in 5 % at most, too; what both add up to is in docs/gate.md.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/gate/side.h"
#include "analysis/statistics/statistics.h"

namespace paceline {

constexpr double kUsualResemblance = 0.5;

enum class Verdict { pass, regression, undecided };
std::string_view to_string(Verdict verdict);
int exit_code(Verdict verdict);  // 0, 1, 2

enum class Replication {
  paired,    // pairs of runs that shared rounds
  sessions,  // means of sessions; at least 3 sessions in the baseline
  runs,      // runs, for quantities that sessions do not influence
  apart,     // runs of too few sessions: shown, but never decides
  none,      // one side has no valid runs
};
std::string_view to_string(Replication evidence);

constexpr double kSignificance = 0.05;
constexpr double kHangsToSee = 0.1;  // the share of runs
constexpr int kMostRoundsUntilDecided = 40;

// Runs that stand out of the others: something held them up, or the build hangs now and then.
struct StandingOut {
  // Rounds whose difference stands out, by the side that is worse in it. Without rounds, runs.
  std::size_t baseline = 0, current = 0;
  std::size_t rounds = 0;  // of so many; without rounds, of so many runs of the current side
  // "1 of 5 runs of the new side took 1.95 times as long, none of the old". Empty: no run does.
  std::string text;
  double change = 0;  // as Check::change, but of the arithmetic means of all runs, with these
  double p = 1, adjusted_p = 1;  // that sides which are alike have so many more on the current one

  bool is_worse_by(double threshold) const;
};

struct Check {
  std::string subject;
  Quantity quantity = Quantity::time;
  Verdict verdict = Verdict::undecided;
  Replication evidence = Replication::none;
  // Why the check did not pass. Empty if it passed, unless it is certainly worse by less than the
  // threshold.
  std::string reason;
  bool is_worse_below_threshold = false;

  // Means (geometric or arithmetic) over the units of the change: rounds, sessions or runs. Runs in
  // rounds that only one side has are excluded, also from the numbers of runs and sessions.
  std::optional<double> baseline, current;
  std::optional<double> run_seconds;  // where `current` is of a sample; 0: not known
  std::optional<Unit> unit;           // of the rate whose inverse is compared as time
  // Positive is worse. For factors a share of the baseline, else a difference.
  std::optional<double> change;
  std::optional<Interval> interval;  // of the change, 95 %
  Difference difference;             // the same, of logarithms for factors
  double threshold = 0, p = 1, adjusted_p = 1;
  std::size_t baseline_runs = 0, current_runs = 0;
  std::size_t baseline_sessions = 0, current_sessions = 0;

  // Runs of both sides that are none of baseline_runs and current_runs: busy ones, with those of
  // the other side's rounds; those that stand out.
  std::size_t busy_left_aside = 0, outlying_left_aside = 0;
  StandingOut standing_out;

  bool more_rounds_help = true;  // false: an undecided check stays so, however many runs there are

  // After fresh runs: the result of the first ones.
  bool is_fresh = false;
  std::optional<double> first_change;
};

struct Judgement {
  std::vector<Check> checks;          // sorted by the baseline's subjects, then by quantity
  std::vector<std::string> warnings;  // problems with the runs, one sentence each, shown first
  std::vector<std::string> notes;     // one sentence each
  Thresholds proposed;                // by a build against itself, from its noise
  std::optional<double> sees;         // of a pass: the change of time that would have been red
  // How often equal builds are red where neighbouring rounds have a correlation of
  // kUsualResemblance, which fixed rounds do not allow for.
  std::optional<double> red_if_resembling;
  bool is_confirmed = false;   // confirmed by fresh runs
  bool is_sequential = false;  // intervals and p hold however often somebody looks
  int rounds = 0;              // of a gate that went on until it was decided; else 0

  Verdict verdict() const;  // regression if any check is; else undecided if any is; else pass
};

using CheckName = std::pair<std::string, Quantity>;  // subject, quantity

struct GateOptions {
  Thresholds thresholds = default_thresholds();
  std::set<Quantity> quantities;  // empty: all
  std::set<CheckName> only;       // empty: all
  bool one_spec = false;          // see match_subjects()
  bool nodes_may_differ = false;  // that one side ran on nodes of its own is only noted
  // by_results: somebody looks after every round, up to `most_rounds`. Else the records say so.
  Stopping stopping = Stopping::fixed;
  std::size_t most_rounds = kMostRoundsUntilDecided;
};

// Matches points by parameters, ignoring those that only one side has. Throws input if no point of
// the baseline has a match.
Judgement judge(const Side& baseline, const Side& current, const GateOptions& options);

// Differences between the machines of both sides, one phrase each.
std::vector<std::string> unlike_machines(const Side& baseline, const Side& current);

// Options that restrict judge() to the checks that did not pass, for fresh runs.
GateOptions find_suspects(const Judgement& first, const GateOptions& options);

// Replaces the checks that did not pass with the verdicts of fresh runs.
void settle(Judgement& first, const Judgement& fresh);

}  // namespace paceline

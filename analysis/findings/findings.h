// Describes the numbers of a table in sentences. Each sentence has a kind with a condition.
// tests/laboratory/explain_test.cpp checks the conditions against data of known laws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/trend.h"

namespace paceline {

enum class FindingKind {
  runs_differ,  // the slowest run of a row took more than 1.25 times as long as the fastest
  survivors,    // runs of a row never completed
  own_nodes,    // rows ran on nodes on which no other row did; so for sessions
  own_session,
  sessions_differ,  // a session differs from the first; see run_order.h for this and the next ones
  sessions_alike,   // it cannot be distinguished from the first
  rounds_trend,     // times rise or fall from round to round
  slow_first_round,
  rounds_resemble,  // runs resemble those of the round before
  one_session,      // all runs are of one session, and so are the intervals
  speed_ups,        // the speed-ups of a series
  slower_than_one,  // for this kind and the next ones see TrendKind
  no_loss,
  hidden_loss,
  above_ideal,
  steady,
  grows,
  falls,
  uneven,
  unclear,
  unjudged,
  phases,          // what the phases say the loss of the largest size consists of
  causes_alike,    // possible causes of a steady fraction, where no phases distinguish them
  too_few_sizes,   // too few sizes to see whether the loss grows
  speed_up_bound,  // upper bound of the speed-up if the fraction stays the same
  peak,            // the fastest number of replicas according to a fit
  settings,  // for a study of one size: the fastest setting, or those that cannot be distinguished from it
  lower_quality,    // rows that trained worse than their base
  left_out,         // what a published table omits
  implied_samples,  // published rows whose time and rate contradict each other
  control,          // how far a point differs from itself
};

std::string_view to_string(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::speed_ups;
  std::string text;
};

// In this order: findings about the runs themselves (run_order.h); for each series (best: the
// fastest rows; matched: the range over CPUs) its numbers and how its loss changes with the
// replicas; the fastest setting of a study of one size; what a published table omits; how far the
// A/A control differs from itself.
std::vector<Finding> findings(const Study& study, const Comparison& comparison,
                              const std::vector<RowFacts>& facts);

// The row whose runs differ the most, with their times, and speed-ups without the extreme runs.
// Empty if none differ widely.
std::vector<Finding> unlike_runs(const Study& study, const Comparison& comparison,
                                 const std::vector<RowFacts>& facts);

// "mpi: speed-up 1.69 / 2.26 for 2, 3 replicas, efficiency 85 / 75 %, Karp-Flatt 0.181 / 0.165".
// Gives ranges if a size has several rows.
Finding series_finding(const ScalingSeries& series, const Comparison& comparison);

// How the loss changes with the replicas; one sentence for all trends of a kind.
std::vector<Finding> trend_findings(const Study& study, const ScalingSeries& series,
                                    const std::vector<Trend>& trends);

// For each trend, of its largest size that loses or gains beyond the noise; none where
// trend_findings() name the parts.
std::vector<Finding> phases_findings(const ScalingSeries& series, const std::vector<Trend>& trends);

// Of all series of the study. Empty if none without phases is steady.
std::vector<Finding> causes_finding(const Study& study, const Comparison& comparison,
                                    const std::vector<Trend>& trends);

}  // namespace paceline

// Describes the numbers of a table in sentences. Each sentence has a kind with a condition.
// tests/laboratory/explain_test.cpp checks the conditions against data of known laws.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/findings/trend.h"
#include "analysis/study/rounds.h"
#include "analysis/study/scaling_series.h"
#include "analysis/study/study.h"

namespace paceline {

struct Finding {
  FindingKind kind = FindingKind::speed_ups;
  std::string text;
  double weight = 0;  // of several of a kind: the share of efficiency that it is about
};
// "ring: it grows" and "mpi: it grows" are one sentence: "ring, mpi: it grows".
std::vector<Finding> merge_alike(std::vector<Finding> found);
// With the place of its kind on a screen.
Statement to_statement(const Finding& finding);

// In this order: findings about the runs themselves (run_order.cpp); for each series (best: the
// fastest rows; matched: the range over CPUs) its numbers and how its loss changes with the
// replicas; the fastest setting of a study of one size; what a published table omits; how far the
// A/A control differs from itself.
std::vector<Finding> findings(const Study& study, const Comparison& comparison,
                              const std::vector<RowFacts>& facts);

// Those of findings() that say what to know of the rows before their numbers are used.
std::vector<Finding> findings_about_rows(const Study& study, const Comparison& comparison,
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
// trend_findings() name the parts, and no causes that may be the time of day.
std::vector<Finding> phases_findings(const ScalingSeries& series, const std::vector<Trend>& trends,
                                     const Causes& causes);

// For all series of the study. Empty if none without phases is steady.
std::vector<Finding> causes_finding(const Study& study, const Comparison& comparison,
                                    const std::vector<Trend>& trends);

// Whether the rows of a published table agree with themselves: its time times its rate are the
// samples of a run.

// "time x rate of 16 GPUs is 2.34 million samples, of the other 4 rows 3.12 to 3.17 million". Of
// rows that give both and differ by more than a tenth from the median of three rows or more. Empty:
// they agree, or there is nothing to compare.
std::string implied_samples_line(const Study& study);

// "the rate of 2 replicas is 4.00 times its samples / fit seconds, as many as its
// gradient-accumulation-steps: ...". For rows of somebody's own program or tool whose rate differs
// from that quotient by more than a factor of 1.5.
std::string rate_off_time_line(const Study& study);

// "the MFU of 2 GPUs is 133 %, and nothing computes more than its peak: ...".
std::string above_peak_line(const Study& study);

// Of programs that state more fit seconds than they ran.
std::string time_above_program_line(const Study& study);

// "in 2 of 12 runs a replica's CPUs were on another NUMA node than its GPU (...)".
std::string far_cpus_line(const Study& study);

// Rows that trained worse than their base ("2 rows have lower accuracy than their base: 32 GPUs
// (70.10 % beside 75.40 %), ..."), or than the row that trained best, and those of which the runs
// do not show it.
std::vector<Finding> quality_findings(const Study& study, const std::vector<RowFacts>& facts);

// The efficiency of a row over a base that computes a sample as fast as the row does, by the
// phases, or over a smaller row that is above the ideal line; the lower one. Empty: nothing shows
// that its base is slow. `names` are of all rows.
struct FairEfficiency {
  Estimate value;    // with an interval
  std::string over;  // "mpi, 2 replicas"
};
std::optional<FairEfficiency> find_fair_efficiency(const Study& study, const Comparison& comparison,
                                                   const std::vector<RowFacts>& facts,
                                                   const std::vector<std::string>& names,
                                                   std::size_t at);

// Speed-ups by trimmed means, where an outlier makes the intervals of the others wide.

// "without the fastest and the slowest runs of each row (trimmed means): 2 replicas: speed-up 2.00
// [1.95, 2.05]". Of speed-ups whose interval is at most half as wide so, where the runs of the row
// or of its base differ by more than `spread`. Where a machine was busy in some of them, those of
// the other runs instead: "without runs on a busy machine: 4 replicas: speed-up 4.00 (1 run)".
std::vector<std::string> calmer_ratios_lines(const Study& study, const Comparison& comparison,
                                             const std::vector<RowFacts>& facts, double spread);

// Origin of the numbers (machines, builds, libraries, transports, data), and the command that
// reproduces a row.

struct ProvenanceFact {
  std::string name;                                         // "machine", "build", ...
  std::vector<std::pair<std::string, std::size_t>> values;  // each with the number of its runs
};

// In a fixed order; only facts that some record states. The last one is when the first and the last
// run started.
std::vector<ProvenanceFact> provenance(const Study& study);

// "machine: A CPU (18 runs), Another (3 runs)".
std::string format_sentence(const ProvenanceFact& fact);

// A recorded command as a user would type it: without the program's folder and without the paths of
// record, logs and state. Empty unless it is a `paceline train` or `bench`.
std::string typed_command(const std::string& recorded);

// The command that runs the row once more: the recorded one without the paths of record and logs,
// or, without a recorded command, the record's parameters as options. Empty if the row is not a run
// of Paceline.
std::string find_command(const Row& row);

// Checks a study against the twelve rules of Hoefler and Belli, "Scientific benchmarking of
// parallel computing systems", SC15. What the table itself guarantees (ratios of means, never means
// of ratios; a stated base and clock) is checked only where records can still break it. Rule 3 asks
// for arithmetic means of costs: hours and joules have them. Times and rates have geometric ones,
// as their noise is a factor, and a breach is where the arithmetic mean is another.

constexpr int kRules = 12;

// Of rule 11: its speed-up, with its whole interval, is above its replicas over the base's.
bool is_above_ideal(const RowFacts& row);
// ": is the base slow, or ...?"; empty: something else may be its cause.
std::string above_ideal_question(const Study& study);

struct BrokenRule {
  int rule = 0;      // 1 to 12
  std::string what;  // the violation, with numbers
  std::string fix;   // an imperative
};

// Sorted by rule. One rule may be violated in several ways.
std::vector<BrokenRule> broken_rules(const Study& study, const Comparison& comparison,
                                     const std::vector<RowFacts>& facts);

// "rule 5: 2 of 9 rows have one run, so no interval; run 3 repeats or more".
std::string format_sentence(const BrokenRule& broken);

// "Rules of Hoefler and Belli (SC15): 2 of 12 broken", or that no breach was found.
std::string summarize(const std::vector<BrokenRule>& broken);

// p-value of the hypothesis that values are normally distributed: Shapiro and Francia's W', with
// the distribution of Royston, "A toolkit for testing for non-normality", The Statistician 42,
// 1993. For 5 to 5,000 values. Returns 1 if all values are equal
// but for rounding.
double normality(std::vector<double> values);

// Findings about the runs themselves: in which sessions and in which order they were made; on which
// nodes is a warning of the study (evidence/covariates.h). Their levels (statistics/run_order.h)
// make at most one table of independent runs in twenty have any of the tested findings.

// In this order: rows whose runs differ widely, or that lost runs; how sessions differ; trends and
// resemblance over rounds; whether there is but one session.
std::vector<Finding> findings_about_runs(const Study& study, const Comparison& comparison,
                                         const std::vector<RowFacts>& facts);

// Rows that lost runs (own_rows.cpp).
std::vector<Finding> survivor_findings(const Study& study, const std::vector<std::string>& names);

std::vector<Finding> session_findings(const Study& study,
                                      const std::vector<SessionRounds>& sessions,
                                      const std::vector<std::string>& names);

// A slow first round, else a trend, step or slow rounds, else resemblance: one of them would show
// in the tests of the others.
std::vector<Finding> round_findings(const std::vector<SessionRounds>& sessions);

// What the record says of why runs of a row differ widely; else the question.
std::string why_unlike(const Row& row);

}  // namespace paceline

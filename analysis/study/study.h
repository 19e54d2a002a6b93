// From records to the rows of a table. The runs of one point make one row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/evidence/covariates.h"
#include "analysis/study/grouping.h"
#include "results/expected_runs.h"
#include "results/store.h"

namespace paceline {

// The completed runs of one point. A gap has one run without results.
struct Row : EvidencePoint {
  bool pooled = false;        // its intervals are over sessions, not runs
  std::vector<Run> controls;  // A/A controls of the point
  std::string gap;  // why there are no results: "failed", "not run"; empty: there are results
  // Runs of the user's own program, made before it was changed: their number, and its "train.py".
  std::size_t older_runs = 0;
  std::string older_program = {};
  // Set where it differs from another row in its nodes, or in its tasks, alone.
  std::optional<int> distinct_nodes = {}, distinct_tasks = {};
};

// Records that can be compared in one table.
struct Study {
  std::string workload, precision;
  Unit unit;  // of rates
  Scaling scaling = Scaling::unknown;
  Work work;         // {"batch_per_replica", 64}: distinguishes it from others of its workload
  std::string goal;  // "test_accuracy>=0.98", the goal of all runs; may be empty
  bool replicas_are_cores = false;
  std::vector<Row> rows;          // sorted by kind, system, backend, axes, gpus, nodes, CPUs
  std::vector<Row> gaps;          // in the same order: points that lack results
  std::string chosen;             // "backend=mpi": the selections; empty: all records
  std::vector<std::string> axes;  // parameters that differ between rows of the same layout
  std::string reference;  // of several programs of the user's own, the spec's first; else empty
  std::vector<std::string> warnings;  // to show before everything else
  Causes causes;                      // that sentences may name
  std::vector<std::string> notes;     // what changes how numbers are read, one sentence each
  // All ignored records and runs, which notes only count (labels.h).
  std::vector<std::string> left_out;
};

// What the intervals of a table are over.
enum class Pooling {
  // Sessions if most rows have several.
  by_sessions,
  always,  // sessions
  never,   // runs
};

// One study for each workload, precision, scaling type and amount of work. `plans` list the points
// that should exist. Throws usage, naming records, if runs hold nothing fixed, and input if no
// completed record remains.
std::vector<Study> make_studies(const StoreContent& content,
                                const std::vector<Selection>& selections = {},
                                const std::vector<ExpectedRuns>& plans = {},
                                Pooling pooling = Pooling::by_sessions,
                                const EvidencePolicy& policy = EvidencePolicy::tables());

// Number of sessions in a row. Runs without a session count as one.
std::size_t count_sessions(const Row& row);

// Number of units of its intervals: runs, or sessions if pooled.
std::size_t units_in(const Row& row);

// So many a decision takes: kFewestRuns, or kFewestPooledSessions of so many runs.
std::size_t fewest_units(const Row& row);

// Whether its runs were measured, and each names its session.
bool knows_sessions(const Row& row);

// How much each run counts in the row's means: runs alike, or sessions alike if these are pooled.
std::vector<double> run_weights(const Row& row);

// The row's runs of sessions that the other has, too; all if one does not know its sessions.
Row runs_in_common(const Row& row, const Row& other);

// Of the row that has fewer in common with the other.
std::size_t units_in_common(const Row& a, const Row& b);

// Whether a row contains a completed run of the named study.
bool has_runs(const Study& study, const std::string& name);

// The sort order of rows and gaps.
bool stands_before(const Study& study, const Row& a, const Row& b);

// Gaps: points that belong into a table but have no results. They are always shown.

// Each gap is a row with one empty run, and its reason in Row::gap: points without a completed run
// ("failed", "timeout", ...); planned points that were not run ("not run") or whose records cannot
// be read ("unreadable"); and, without a plan, sizes that other series have and this one lacks
// between its own ("not run"). Unordered. `unfinished` are runs of this study.
std::vector<Row> find_gaps(const Study& study, const std::vector<Run>& unfinished,
                           const std::vector<ExpectedRuns>& plans);

// Without a plan: a sentence on sizes that only other series have, beyond the end of a series. May
// be empty.
std::string open_ends_note(const Study& study);

// A sentence on planned points without a table, because no run of their workload, precision or
// amount of work completed. May be empty.
std::string no_table_note(const std::vector<ExpectedRuns>& plans,
                          const std::vector<Study>& studies);

// Anonymizes records for reports that are published.

// Hosts become host-1, host-2, ...; user names and mail addresses become "user"; paths keep only
// their last part. Removes what Slurm provided (job, cluster, partition, nodes, modules), GPU
// serial numbers and PCI addresses. Applies to all texts of a record, its path, and the reasons of
// rejected records.
StoreContent anonymous(StoreContent content);

// Finds names in records and replaces them in any text.
class Disguise {
 public:
  explicit Disguise(const std::vector<Record>& records);
  std::string operator()(const std::string& text) const;

 private:
  std::vector<std::pair<std::string, std::string>> names_;  // longest first
};

}  // namespace paceline

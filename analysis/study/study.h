// From records to the rows of a table: runs of one point stand together.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/grouping.h"
#include "results/expected_runs.h"
#include "results/store.h"

namespace paceline {

// The completed runs of one point: one kind, system, layout and set of parameters (the seed aside).
// A gap has one run without results.
struct Row {
  std::vector<Run> runs;  // what is averaged; never empty
  bool tainted =
      false;  // there are only resumed, throttled, oversubscribed or traced runs: no interval
  bool pooled = false;        // the means of its sessions, not runs, make its intervals
  std::size_t left_out = 0;   // such runs beside clean ones
  std::vector<Run> controls;  // the same point, run beside these to be compared with them
  std::string gap;            // why there are no results: "failed", "not run"; empty: there are

  const Run& first() const { return runs.front(); }
};

// Records that can stand in one table.
struct Study {
  std::string workload, precision;
  Scaling scaling = Scaling::unknown;
  Work work;         // {"batch_per_replica", 64}: what sets it apart from others of its workload
  std::string goal;  // "test_accuracy>=0.98", with which all runs end; or empty
  bool replicas_are_cores = false;
  std::vector<Row> rows;              // by kind, system, backend, axes, gpus, nodes, CPUs
  std::vector<Row> gaps;              // in the same order: points that should have results
  std::string chosen;                 // "backend=mpi": the selections; empty: all records
  std::vector<std::string> axes;      // parameters that differ between rows of one layout
  std::vector<std::string> warnings;  // what must be known before anything else is read
  std::vector<std::string> notes;     // one sentence each, for the legend
  std::vector<std::string> left_out;  // all records and runs that notes only count (labels.h)
};

// Chooses records: a parameter's name, or kind, study, session, build, system or workload.
struct Selection {
  std::string key, value;
};

// "backend=mpi", as an option gives it. Throws usage, with the example.
Selection parsed_selection(const std::string& text, const std::string& option = "--only",
                           const std::string& example = "backend=mpi");

// Records of several workloads, precisions, scaling types or amounts of work make a study each.
// Throws usage, naming records, where runs hold nothing fixed, and input where no completed record
// is left. `plans` say which points should be there. With `pool` the sessions of a row are nested.
std::vector<Study> make_studies(const StoreContent& content,
                                const std::vector<Selection>& selections = {},
                                const std::vector<ExpectedRuns>& plans = {}, bool pool = false);

// How many sessions made the runs of a row; runs that tell none are of one.
std::size_t sessions_of(const Row& row);

// Of what its intervals are made: runs, or where these are pooled sessions.
std::size_t units_in(const Row& row);

// Whether there is a completed run of this study's in its rows.
bool has_runs_of(const Study& study, const std::string& name);

// The order of rows and gaps.
bool stands_before(const Study& study, const Row& a, const Row& b);

}  // namespace paceline

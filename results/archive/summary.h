// What of a study is there and what is not: for its archive, and after a merge.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/expected_runs.h"

namespace paceline {

struct MissingRuns {
  std::string point;         // what varies in the plan: "gpus=2,backend=mpi"
  std::vector<int> repeats;  // without a completed run, on whatever machine
};

struct StudySummary {
  std::string study;
  std::size_t records = 0, completed = 0;
  std::optional<std::size_t> planned;                         // runs; empty: the study has no plan
  std::vector<MissingRuns> missing;                           // of the planned ones
  std::vector<std::pair<std::string, std::size_t>> machines;  // with their completed runs
};

// A study's folder, without a slash at its end.
std::filesystem::path study_path(const std::filesystem::path& folder);

// Its records. Throws input if some are not in STUDY/<point>, as in a folder of studies.
StoreContent load_study(const std::filesystem::path& study);

// Of records of one study. Throws input, with `where`, if they name several.
StudySummary summarize(const std::optional<ExpectedRuns>& plan, const std::vector<Record>& records,
                       const std::string& where);

Json to_json(const StudySummary& summary);
// "60 runs planned, 2 missing", the missing ones, the machines: a line each.
std::string to_text(const StudySummary& summary);

}  // namespace paceline

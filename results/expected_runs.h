// What a study was last asked to run: STUDY/plan.json, written before its runs are made, so that a
// point without a record is known to be missing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/parameters.h"
#include "results/store.h"

namespace paceline {

constexpr char kWantedFile[] = "plan.json";

struct ExpectedRuns {
  std::string study, workload;
  int repeats = 1;
  std::vector<Point> points;  // the parameters that the spec gives
};

// Replaces an older plan. Throws input where the folder cannot be written.
void write_wanted(const std::filesystem::path& study_folder, const ExpectedRuns& plan);

// Of the studies named and of those right below a folder named. What cannot be read is among
// `content`'s rejected.
std::vector<ExpectedRuns> plans_of(const std::vector<std::filesystem::path>& studies,
                                   StoreContent& content);

// Nothing where the folder has none. Throws input naming the file and what is wrong with it.
std::optional<ExpectedRuns> read_wanted(const std::filesystem::path& study_folder);

}  // namespace paceline

// Finishes a study after its jobs have ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/study_view.h"

namespace paceline {

// Writes a failed record, with Slurm's reason, for each run whose array element ended without a
// record. Records keep what Slurm forgets. Returns the number written; a second call writes none.
std::size_t record_lost_runs(const std::filesystem::path& study, const std::vector<RunView>& runs);

// Summarizes the reference runs (STUDY.reference): their spread over jobs, and each node that is
// slower than the median by more than 5 %. Empty without reference runs.
std::vector<std::string> reference_lines(const std::filesystem::path& study);

}  // namespace paceline

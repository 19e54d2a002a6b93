// What a study that ran in jobs leaves to be done once they have ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "slurm/study_view.h"

namespace paceline {

// A failed record for each run whose element has ended without leaving one, with Slurm's reason:
// Slurm forgets, records do not. Returns how many were written; a second call finds none left.
std::size_t record_lost_runs(const std::filesystem::path& study, const std::vector<RunView>& runs);

// The reference runs (STUDY.reference): a line on their spread over jobs, and one for each node
// that is slower than the median by more than 5 %. Empty where there are none.
std::vector<std::string> reference_lines(const std::filesystem::path& study);

}  // namespace paceline

// What a run that ended badly left in its status folder, for people and for programs.
#pragma once

#include <filesystem>

namespace paceline {

// Prints it; the line that says why is the last. Returns the run's exit code, or 2 where some rank
// still runs. Throws input where there is nothing to read.
int print_post_mortem(const std::filesystem::path& folder, bool json);

}  // namespace paceline

// Prints the post-mortem of a failed run from its status folder.
#pragma once

#include <filesystem>

namespace paceline {

// The last line has the reason. Returns the run's exit code, or 2 if some rank still runs. Throws
// input if the folder has no files of a run.
int print_post_mortem(const std::filesystem::path& folder, bool json);

}  // namespace paceline

// Finds files that are shipped with the program: sweep specs and site profiles.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// `given` if that file exists, else the shipped file of that name: "quick", "quick.json" and
// "sweeps/quick.json" are equivalent. `folder` is "sweeps" or "slurm/sites", in share/paceline of
// an installation or in the source tree. Throws input suggesting the nearest shipped file.
std::filesystem::path find_shipped(const std::filesystem::path& given, const std::string& folder);

// The path of a shipped file or folder such as "results/reference" or "sweeps/quick.json". Empty if
// it does not exist.
std::filesystem::path shipped_path(const std::filesystem::path& relative);

}  // namespace paceline

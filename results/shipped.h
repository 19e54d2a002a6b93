// Files that Paceline ships beside the program: specs of sweeps, profiles of sites.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// `given` where it is a file; else the shipped file of that name: "quick" or "quick.json" is
// sweeps/quick.json. `folder` is "sweeps" or "slurm/sites": below share/paceline of an installed
// program, or the source tree that it was built from. Throws input naming the nearest shipped one.
std::filesystem::path find_shipped(const std::filesystem::path& given, const std::string& folder);

// Where the shipped files of "results/reference" lie; empty: they are not here.
std::filesystem::path shipped_folder(const std::string& folder);

}  // namespace paceline

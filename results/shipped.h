// Files that Paceline ships beside the program: specs of sweeps, profiles of sites.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// `given` where it is a file; else the shipped file of that name: "quick", "quick.json" and
// "sweeps/quick.json" are one. `folder` is "sweeps" or "slurm/sites": below share/paceline of an
// installed program, or the source tree that it was built from. Throws input naming the nearest
// shipped one.
std::filesystem::path find_shipped(const std::filesystem::path& given, const std::string& folder);

// Where "results/reference" or "sweeps/quick.json" lies among the shipped files; empty: not there.
std::filesystem::path shipped_path(const std::filesystem::path& relative);

}  // namespace paceline

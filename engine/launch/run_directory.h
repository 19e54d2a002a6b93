// Where a job's runs keep what they must find again.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/launch/place.h"

namespace paceline {

// In a Slurm job: its number below the folder that it was submitted from, ARRAY_ELEMENT for an
// element of an array; the same after a requeue. Nothing elsewhere.
std::optional<std::filesystem::path> run_directory_of_job(const Environment& environment);

}  // namespace paceline

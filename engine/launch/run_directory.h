// The run's own directory inside a job, which contains everything that belongs to the run.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/core/environment.h"

namespace paceline {

// Under Slurm $SLURM_SUBMIT_DIR/<SLURM_ARRAY_JOB_ID>_<SLURM_ARRAY_TASK_ID>, without an array
// $SLURM_SUBMIT_DIR/<SLURM_JOB_ID>, which is the same after a requeue. Empty elsewhere, and if the
// ids are not numbers. Does not create it.
std::optional<std::filesystem::path> run_directory_of_job(const Environment& environment);

}  // namespace paceline

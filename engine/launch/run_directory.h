// The run's own directory, where a job has one: what belongs to the run lies below it.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/core/environment.h"

namespace paceline {

// Under Slurm $SLURM_SUBMIT_DIR/<SLURM_ARRAY_JOB_ID>_<SLURM_ARRAY_TASK_ID>, without an array
// $SLURM_SUBMIT_DIR/<SLURM_JOB_ID>: the same again after a requeue. Nothing elsewhere, and where
// the numbers are none. Not made.
std::optional<std::filesystem::path> run_directory_of_job(const Environment& environment);

}  // namespace paceline

#include "engine/launch/run_directory.h"

#include <string>

#include "engine/core/text.h"

namespace paceline {

namespace {

std::string read_number(const Environment& environment, const char* name) {
  const std::string text = environment_value(environment, name);
  return to_integer(text).value_or(-1) >= 0 ? text : "";
}

}  // namespace

std::optional<std::filesystem::path> run_directory_of_job(const Environment& environment) {
  const std::filesystem::path submitted = environment_value(environment, "SLURM_SUBMIT_DIR");
  const std::string job = read_number(environment, "SLURM_JOB_ID");
  if (!submitted.is_absolute() || job.empty()) return std::nullopt;
  const std::string array = read_number(environment, "SLURM_ARRAY_JOB_ID");
  const std::string task = read_number(environment, "SLURM_ARRAY_TASK_ID");
  return submitted / (array.empty() || task.empty() ? job : array + "_" + task);
}

}  // namespace paceline

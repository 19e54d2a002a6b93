#include "engine/launch/run_directory.h"

#include <string>

namespace paceline {

std::optional<std::filesystem::path> run_directory_of_job(const Environment& environment) {
  const auto value = [&](const char* name) -> std::string {
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
  };
  const std::string folder = value("SLURM_SUBMIT_DIR"), job = value("SLURM_JOB_ID");
  if (folder.empty() || job.empty()) return std::nullopt;
  const std::string array = value("SLURM_ARRAY_JOB_ID"), element = value("SLURM_ARRAY_TASK_ID");
  const bool of_array = !array.empty() && !element.empty();
  return std::filesystem::path(folder) / (of_array ? array + "_" + element : job);
}

}  // namespace paceline

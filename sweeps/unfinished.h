// Writes the record of a run that ended without one. The process that watched it knows the reason.
#pragma once

#include <filesystem>
#include <string>

#include "results/parameters.h"

namespace paceline {

struct UnfinishedRun {
  std::string study, workload;
  std::string point, point_folder;
  Point parameters;  // as given in the spec
  int repeat = 1;    // also its round
  std::string session;
  std::string status;  // failed, timeout, preempted
  std::string reason;
};

// Writes it as the next attempt of its repeat. Returns the record's path. Throws input if that
// fails.
std::filesystem::path write_unfinished(const std::filesystem::path& study,
                                       const UnfinishedRun& run);

}  // namespace paceline

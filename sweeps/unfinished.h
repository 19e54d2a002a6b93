// The record of a run that ended without leaving one itself: somebody who saw it writes why.
#pragma once

#include <filesystem>
#include <string>

#include "results/parameters.h"

namespace paceline {

struct UnfinishedRun {
  std::string study, workload;
  std::string point, point_folder;
  Point parameters;  // as given
  int repeat = 1;    // its round, too
  std::string session;
  std::string status;  // failed, timeout, preempted
  std::string reason;
};

// As the next attempt of its repeat. Returns the record's path. Throws input where it cannot be
// written.
std::filesystem::path write_unfinished(const std::filesystem::path& study,
                                       const UnfinishedRun& run);

}  // namespace paceline

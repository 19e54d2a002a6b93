// A run's place in its study, passed to the program through the hidden --context of train.
#pragma once

#include <string>

namespace paceline {

// The session in scripts of a dry run. Whoever sends them by hand makes it one of his own.
constexpr char kDryRunSession[] = "DRY-RUN";

struct RunContext {
  std::string study, point, point_folder, session;
  int repeat = 1, round = 1;
  bool sequential = false;   // RunFlags::sequential
  std::string program = {};  // UserProgram::definition, of workload command

  std::string json() const;
};

// Throws input if it is not JSON, usage if something is missing.
RunContext parse_run_context(const std::string& text);

}  // namespace paceline

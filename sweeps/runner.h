// Runs what is missing of a study on this machine: one fresh process a run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sweeps/eta.h"
#include "sweeps/inventory.h"
#include "sweeps/spec.h"

namespace paceline {

struct RunnerSetup {
  const Spec* spec = nullptr;
  const std::vector<PlannedPoint>* points = nullptr;
  std::filesystem::path study;       // STUDY, the folder of records
  std::vector<std::string> program;  // what is started: {"/usr/bin/paceline"}, or a test's fake
  std::vector<std::string> extra;    // more arguments: {"--data=DIR"}
  double timeout_seconds = 0;        // of a run; 0: none
  std::function<void(const std::string&)> line;    // a finished run, a note
  std::function<void(const std::string&)> status;  // what goes on now, overwritten; may be empty
};

struct RunnerResult {
  int completed = 0, failed = 0;
  int stopped_by = 0;  // a signal that ended the study early; 0: none
};

// Runs each of `runs` that is not done, in their order. A run that fails, dies or times out leaves
// a record that says so, and the next one goes on. On SIGINT or SIGTERM the current run is ended
// and nothing of it is kept. Throws input where the study's folder cannot be written or another
// sweep works in it.
RunnerResult run_study(const RunnerSetup& setup, const std::vector<RunStatus>& runs);

// The command of one run, for people: it can be pasted into a shell.
std::vector<std::string> run_command(const RunnerSetup& setup, const PlannedPoint& point);

}  // namespace paceline

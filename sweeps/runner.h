// Runs what is missing of a study on this machine: one fresh process a run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sweeps/inventory.h"
#include "sweeps/spec.h"
#include "sweeps/study_lock.h"

namespace paceline {

struct RunnerSetup {
  const Spec* spec = nullptr;
  const std::vector<PlannedPoint>* points = nullptr;
  std::vector<std::string> program;                // what is started: {"/usr/bin/paceline"}
  double grace_seconds = 20;                       // from SIGTERM to SIGKILL
  std::function<void(const std::string&)> line;    // a finished run
  std::function<void(const std::string&)> status;  // what goes on now, written over; may be empty
};

// One of several programs that make the same points side by side.
struct RunnerSide {
  std::string name;                  // in the lines: "old"; empty where there is one side
  std::vector<std::string> program;  // what is started
  const std::vector<PlannedPoint>* points = nullptr;
  std::filesystem::path study;  // its records
};

struct RunnerResult {
  int completed = 0, failed = 0;
  int stopped_by = 0;  // a signal that ended the study early; 0: none
};

// Runs each of `runs` that is not done, in their order, as
//   PROGRAM train WORKLOAD --axis=value... --quiet --store=STUDY --context=JSON
// A run leaves its own record; one that fails, dies or takes longer than the spec's timeout gets a
// record that says so, and the next one goes on. What a run prints goes to
// STUDY/logs/<point>.<repeat>.<attempt>.log. On SIGINT, SIGTERM or SIGHUP the current run is ended,
// nothing of it is kept, and no other is started. Throws input where records cannot be written.
// Call from the main thread.
RunnerResult run_study(const RunnerSetup& setup, const StudyLock& lock,
                       const std::vector<RunStatus>& runs);

// The same for several sides in one session, each with a lock of its own that the caller holds;
// ScheduledRun::side says whose a run is. Program and points of the setup are not used.
RunnerResult run_sides(const RunnerSetup& setup, const std::vector<RunnerSide>& sides,
                       const std::vector<RunStatus>& runs);

// What the program is told: train WORKLOAD --axis=value... --quiet --store=STUDY --context=JSON
std::vector<std::string> run_words(const Spec& spec, const PlannedPoint& point,
                                   const ScheduledRun& run, const std::filesystem::path& study,
                                   const std::string& session);

}  // namespace paceline

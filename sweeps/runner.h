// Runs the missing runs of a study on this machine, each in a fresh process.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/file.h"
#include "sweeps/inventory.h"
#include "sweeps/spec.h"

namespace paceline {

struct RunnerSetup {
  const Spec* spec = nullptr;
  const std::vector<PlannedPoint>* points = nullptr;
  std::vector<std::string> program;                // command to start: {"/usr/bin/paceline"}
  double grace_seconds = 20;                       // from SIGTERM to SIGKILL
  std::function<void(const std::string&)> line;    // called for each finished run
  std::function<void(const std::string&)> status;  // current state, overwritten; may be empty

  // For studies whose number of runs depends on their results. All may be empty.
  // Called when the runs so far have ended. Returns those to make next; none: the study ends.
  std::function<std::vector<RunStatus>()> more;
  // Called before each run. Returns whether the budget allows it; if not, the run is left out.
  std::function<bool(const ScheduledRun&)> affordable;
  // Called after each run that ended, well or not, with its duration.
  std::function<void(const ScheduledRun&, double seconds)> took;
};

// One of several programs that run the same points side by side.
struct RunnerSide {
  std::string name;                  // shown in lines: "old"; empty if there is only one side
  std::vector<std::string> program;  // command to start
  const std::vector<PlannedPoint>* points = nullptr;
  const Folder* study = nullptr;  // of its records
  const Spec* spec = nullptr;     // of its runs; null: RunnerSetup::spec
};

struct RunnerResult {
  int completed = 0, failed = 0;
  int stopped_by = 0;           // the signal that interrupted the study; 0: none
  std::size_t not_started = 0;  // after a first round in which no run succeeded
};

// Runs each of `runs` that is not done, in order, as
//   PROGRAM train WORKLOAD --axis=value... --quiet --store=STUDY --context=JSON
// A run writes its own record. If it fails, crashes or exceeds the spec's timeout, a record with
// the reason is written, and the next run follows, unless the study has no result yet and all runs
// of its first round failed. Output goes to
// STUDY/logs/<point>.<repeat>.<attempt>.log. Throws input with what is where if a study was moved
// or removed meanwhile. SIGINT, SIGTERM or SIGHUP ends the current run without a record, and starts
// no other. Throws input if records cannot be written. Call it from the main thread.
RunnerResult run_study(const RunnerSetup& setup, const StudyLock& lock,
                       const std::vector<RunStatus>& runs);

// The same for several sides in one session. The caller holds the lock of each side.
// ScheduledRun::side is the side of a run. Ignores program and points of the setup.
RunnerResult run_sides(const RunnerSetup& setup, const std::vector<RunnerSide>& sides,
                       const std::vector<RunStatus>& runs);

// The command line of a run: train WORKLOAD --axis=value... --quiet --store=STUDY --context=JSON
std::vector<std::string> run_words(const Spec& spec, const PlannedPoint& point,
                                   const ScheduledRun& run, const std::filesystem::path& study,
                                   const std::string& session);

// The log of one run: everything in a file, and its last line for people.

class RunLog {
 public:
  RunLog(const Folder& study, const std::filesystem::path& name);  // replaces an older file

  void append(std::string_view text);
  std::string last_line() const;  // without "paceline: "; may be empty
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  Descriptor descriptor_;
  std::string tail_;
};

// While it exists, SIGINT, SIGTERM and SIGHUP are blocked until polled: between two runs they must
// not end this process in the middle of a record.

class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, number);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Removes and returns a pending one. 0: none.
  int take() {
    const timespec now{0, 0};
    const int number = sigtimedwait(&set_, nullptr, &now);
    return number > 0 ? number : 0;
  }

 private:
  sigset_t set_, before_;
};

}  // namespace paceline

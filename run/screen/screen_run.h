// Measures every device of a job, and links between its nodes in a tournament of pairs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/screen/screen.h"
#include "engine/comm/communicator.h"

namespace paceline {

struct ScreenRequest {
  std::string gpus, nodes, backend, device, cpus_per_task;  // empty: the defaults
  int rounds = 0;                                           // 0: 4, of more than kManyNodes nodes 6
  std::string out;  // a new folder; empty: the screen is not kept
  bool oversubscribe = false, busy_ok = false;
  Deadlines deadlines;
};

struct ScreenOutcome {
  std::optional<MachineScreen> screen;  // of rank 0
  int exit_code = 0;
};

// As a rank of a launcher, or of ranks that it starts itself. Throws usage or input: the backend
// connects no pairs, a device is used by others, the folder is not empty.
ScreenOutcome run_screen(const ScreenRequest& request, const std::vector<std::string>& command);

// The switch of a node, as Slurm's topology plugin states it: "s2" of "s0.s2.cn12" with the pattern
// "switch.switch.node".
std::string innermost_switch(const std::string& address, const std::string& pattern);

// As a job of its own, by a site profile.
struct ScreenJobRequest : ScreenRequest {
  std::string site;
  int minutes = 10;  // the job's limit
  bool dry_run = false, wait = false;
};

// Prints what it costs and, unless `confirm` says no, sends a script that it writes into `out`
// (empty: a new folder in screens/); a dry run prints the script. Returns the folder once the job
// has ended, if it waits; empty: it does not wait, none: the answer was no. Throws usage or input:
// the profile has placeholders, Slurm refuses, the job left no screen.
std::optional<std::string> submit_screen(const ScreenJobRequest& request,
                                         const std::function<void(const std::string&)>& print,
                                         const std::function<bool()>& confirm);

}  // namespace paceline

// A screen as a job of its own, by a site profile.
#pragma once

#include <functional>
#include <string>

#include "run/screen/screen_run.h"

namespace paceline {

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

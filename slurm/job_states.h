// Queries Slurm for the states of array elements, queued and ended.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "slurm/commands.h"

namespace paceline {

struct ElementKey {
  std::int64_t job = 0;  // id of the array
  int element = 0;
  friend bool operator==(const ElementKey&, const ElementKey&) = default;
  friend bool operator<(const ElementKey& a, const ElementKey& b) {
    return std::tie(a.job, a.element) < std::tie(b.job, b.element);
  }
  std::string text() const;  // "5_3"
};

struct ElementState {
  std::string state;   // PENDING, RUNNING, COMPLETED, FAILED, TIMEOUT, CANCELLED, ...
  std::string detail;  // why it waits, or exit code and nodes, for people
  bool in_queue() const;
  bool pending() const;
};

using ElementStates = std::map<ElementKey, ElementState>;

// Parse squeue's "%i|%T|%r", sacct's "JobID|State|ExitCode|NodeList", "scontrol -o show job", and
// lines of jobcomp/filetxt (both KEY=value). Skip lines about anything else; the last line of an
// element wins. Truncated element lists are incomplete: use squeue -r.
ElementStates parse_squeue(std::string_view text);
ElementStates parse_sacct(std::string_view text);
ElementStates parse_job_lines(std::string_view text);

// Elements of these arrays in this user's queue. Throws usage with Slurm's message if squeue fails.
ElementStates ask_queue(const SlurmCommands& slurm, const std::vector<std::int64_t>& jobs);

// Final states of these arrays, from sacct; without accounting, from Slurm's file of completed jobs
// if readable; for unknown elements, from scontrol, which forgets jobs after some minutes. Elements
// may be missing.
ElementStates ask_history(const SlurmCommands& slurm, const std::vector<std::int64_t>& jobs);

}  // namespace paceline

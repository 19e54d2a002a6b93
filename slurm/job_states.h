// What Slurm says of the elements of arrays: of those in the queue and of those that have ended.
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
  std::int64_t job = 0;  // of the array
  int element = 0;
  friend bool operator==(const ElementKey&, const ElementKey&) = default;
  friend bool operator<(const ElementKey& a, const ElementKey& b) {
    return std::tie(a.job, a.element) < std::tie(b.job, b.element);
  }
  std::string text() const;  // "5_3"
};

struct ElementState {
  std::string state;   // PENDING, RUNNING, COMPLETED, FAILED, TIMEOUT, CANCELLED, ...
  std::string detail;  // why it waits, or exit code and nodes: for people
  bool in_queue() const;
  bool pending() const;
};

using ElementStates = std::map<ElementKey, ElementState>;

// squeue's "%i|%T|%r"; sacct's "JobID|State|ExitCode|NodeList"; "scontrol -o show job" and the
// lines of jobcomp/filetxt, both KEY=value. Lines that are not of elements are passed over; of two
// of one element the later counts. A list that Slurm cut short cannot name what it left out: ask
// squeue with -r.
ElementStates parse_squeue(std::string_view text);
ElementStates parse_sacct(std::string_view text);
ElementStates parse_job_lines(std::string_view text);

// What is in the queue of this user, of these arrays. Throws usage with Slurm's words where squeue
// does not answer.
ElementStates ask_queue(const SlurmCommands& slurm, const std::vector<std::int64_t>& jobs);

// What became of these arrays: from sacct, or, where there is no accounting, from the file of
// completed jobs if Slurm writes one that can be read here; from scontrol, which forgets after some
// minutes, what these do not know yet. Elements may be missing.
ElementStates ask_history(const SlurmCommands& slurm, const std::vector<std::int64_t>& jobs);

}  // namespace paceline

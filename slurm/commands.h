// Runs Slurm's commands from PATH. The only place that calls them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/core/environment.h"

namespace paceline {

struct CommandResult {
  int code = 0;          // 127: command not found; 128 + number: killed by a signal
  std::string out, err;  // err is trimmed
  bool timed_out = false;

  bool ok() const { return code == 0 && !timed_out; }
  std::string complaint() const;  // one line: its error message, or how it ended
};

// What came of a submission. Neither a job nor a refusal: nobody knows whether Slurm has it.
struct SbatchAnswer {
  std::int64_t job = 0;
  bool is_refused = false;
  std::string why;  // there is no job; one line
};

class SlurmCommands {
 public:
  explicit SlurmCommands(Environment environment);

  // Without a shell: each word is one argument. Waits at most `seconds`. `unset`: variables that
  // the command does not get.
  CommandResult run(const std::vector<std::string>& words, double seconds = 120,
                    const std::vector<std::string>& unset = {}) const;

  bool has(const std::string& program) const;
  void need(const std::string& program) const;  // throws usage if it is not in PATH

  // Submits a script of the job `name`. An answer that is no bare job id is not believed: then the
  // job is looked up by its name, several times where sbatch did not clearly refuse.
  SbatchAnswer submit(const std::filesystem::path& script, const std::filesystem::path& folder,
                      const std::vector<std::string>& options, const std::string& name) const;

  // The newest job of this name in queue or accounting. 0: neither knows one. Throws usage if the
  // queue cannot be asked.
  std::int64_t find_job(const std::string& name) const;

  // Variables of the user's shell that would replace what the script asks for, or add to it; submit
  // leaves them out. Account, partition and the like count only where the script names its own.
  std::vector<std::string> overriding_variables(const std::string& script) const;

  // Cancels those of these jobs that are in the queue. Throws usage with Slurm's message.
  void cancel(const std::vector<std::int64_t>& jobs) const;

  // A value of "scontrol show config". May be empty.
  std::string configured(const std::string& key) const;

 private:
  std::string find(const std::string& program) const;

  Environment environment_;
};

// Queries Slurm for the states of array elements, queued and ended.

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

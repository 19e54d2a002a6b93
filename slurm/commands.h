// Slurm's own programs, as PATH has them: the one place that calls them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/environment.h"

namespace paceline {

struct CommandResult {
  int code = 0;          // 127: there is no such program; 128 and the signal's number
  std::string out, err;  // err without what is empty at its ends
  bool timed_out = false;

  bool ok() const { return code == 0 && !timed_out; }
  std::string complaint() const;  // on one line: what it said, or how it ended
};

class SlurmCommands {
 public:
  explicit SlurmCommands(Environment environment);

  // No shell is between: a word is an argument, whatever it holds. Waits at most `seconds`.
  CommandResult run(const std::vector<std::string>& words, double seconds = 120) const;

  bool has(const std::string& program) const;

  // The job's id. Throws usage with Slurm's words where it refuses; `fix` says what of ours to
  // check.
  std::int64_t submit(const std::filesystem::path& script, const std::filesystem::path& folder,
                      const std::vector<std::string>& options, const std::string& fix) const;

  // Ends what of these jobs is in the queue. Throws usage with Slurm's words.
  void cancel(const std::vector<std::int64_t>& jobs) const;

  // A value of "scontrol show config", or empty.
  std::string configured(const std::string& key) const;

 private:
  std::string find(const std::string& program) const;

  Environment environment_;
};

}  // namespace paceline

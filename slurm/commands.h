// Runs Slurm's commands from PATH. The only place that calls them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
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

class SlurmCommands {
 public:
  explicit SlurmCommands(Environment environment);

  // Without a shell: each word is one argument. Waits at most `seconds`.
  CommandResult run(const std::vector<std::string>& words, double seconds = 120) const;

  bool has(const std::string& program) const;

  // Returns the job id. Throws usage with Slurm's message if the submission is rejected, and `fix`
  // as the cure.
  std::int64_t submit(const std::filesystem::path& script, const std::filesystem::path& folder,
                      const std::vector<std::string>& options, const std::string& fix) const;

  // Cancels those of these jobs that are in the queue. Throws usage with Slurm's message.
  void cancel(const std::vector<std::int64_t>& jobs) const;

  // A value of "scontrol show config". May be empty.
  std::string configured(const std::string& key) const;

 private:
  std::string find(const std::string& program) const;

  Environment environment_;
};

}  // namespace paceline

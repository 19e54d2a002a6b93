// One run of the real program to which something is done: started, its ranks found, ended within a
// bound, and what it leaves behind looked at.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline::faults {

// How ranks come about: `paceline train` starts them; mpirun or srun, by hand.
enum class Starter { us, mpirun, srun };

// `paceline train` of two tasks (of mirrored: one task of two replicas) that does not end by
// itself, of as few cores as there are; a progress line every few steps.
std::vector<std::string> training(const std::string& backend, Starter starter,
                                  const std::vector<std::string>& more = {});

struct End {
  bool in_time = false;
  int code = -1;  // 128 + signal where one ended it
  std::string err;
  std::string last_line;  // of standard error
  double seconds = 0;     // since the wait began
};

class Victim {
 public:
  struct Limit {
    int resource;
    rlim_t value;
  };
  // `command` in an empty folder of its own; `limits` from the start.
  explicit Victim(const std::vector<std::string>& command,
                  const std::map<std::string, std::string>& environment = {},
                  const std::vector<Limit>& limits = {});
  ~Victim();  // kills all that is left
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  const std::filesystem::path& folder() const { return scratch_.path(); }

  // True once rank 0 has told of a step, or the text is on standard error.
  bool trains(double patience = 60) { return says("step ", patience); }
  bool says(const std::string& text, double patience);

  // The process of a rank, waited for; nothing where it does not come, or ranks are no processes.
  std::optional<pid_t> rank(int number, double patience = 60);
  pid_t started() const { return child_; }
  void send(pid_t process, int signal_number) const;

  // The end of what was started. Past `seconds` all of it is killed, and in_time is false.
  End wait(double seconds);

  // What still lives of this run, by the mark in its environment: a line each. Ends are waited for.
  std::vector<std::string> left(double patience = 30) const;

  // Why the folder is not as it should be: a file half written, a temporary one, a record that is
  // none. Empty: all is well. A complete sidecar without its record may stay of a killed run.
  std::string disorder() const;

  std::string errors() const;  // standard error so far

 private:
  struct Process {
    pid_t id;
    int rank;  // -1: none
    std::string command;
  };
  std::vector<Process> processes() const;
  bool ended();
  void kill_all() const;

  Scratch scratch_, streams_;
  std::string mark_;
  pid_t child_ = -1;
  std::optional<int> code_;
};

// Options that make ranks wait for `seconds` at most, and for `start_seconds` before the first step
// has ended, which on a slow machine takes its time.
std::vector<std::string> deadline(int seconds, int start_seconds = 60);

}  // namespace paceline::faults

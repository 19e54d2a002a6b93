// A child process in a process group of its own, whose standard error we read.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/environment.h"

namespace paceline {

struct ChildSetup {
  std::vector<std::string> command;  // a path and its arguments
  Environment environment;
  // Standard output goes where ours goes, or into the pipe too, or into a pipe of its own.
  bool capture_output = false, separate_output = false;
};

// How it ended: exit code, or the signal that killed it.
struct ChildEnd {
  int exit_code = 0;
  int signal = 0;
  bool told_to_stop = false;  // by us, before: then the rest is a consequence, not a cause
};

class Child {
 public:
  // Starts it with an empty standard input. It gets SIGTERM if this process dies. Throws internal
  // if it cannot be started.
  explicit Child(const ChildSetup& setup);
  ~Child();  // kills what still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int pipe() const { return pipe_; }
  int output_pipe() const { return output_pipe_; }  // -1: no pipe of its own
  void signal(int number) noexcept;
  // Never blocks. What an ended child leaves in its process group is killed.
  bool ended(ChildEnd& end);

 private:
  pid_t pid_ = -1;
  int pipe_ = -1, output_pipe_ = -1;
  bool reaped_ = false;
};

// How long children may take, in seconds.
struct ChildLimits {
  double grace = 15;     // to end after SIGTERM, before SIGKILL
  double run = 0;        // before SIGTERM; 0: for ever
  double survivors = 5;  // of several, once one has ended badly, before SIGTERM
  // Asked now and then; true: nothing is to be hoped for, SIGTERM. Must not throw.
  std::function<bool()> hopeless = {};
  double survivors_grace = 5;  // then, before SIGKILL: they wait, or are stopped, for nothing
  // Told of the first SIGTERM or SIGUSR1 instead of the children, which end by themselves at a
  // moment that suits them; the next one is passed on. Empty: the first is, too.
  std::function<void(int signal)> ask_to_stop = {};
};

struct Watch {
  ChildEnd end;
  int stopped_by = 0;  // the first SIGINT, SIGTERM or SIGHUP passed on; 0: none
  bool timed_out = false;
};

struct WatchOfMany {
  std::vector<ChildEnd> ends;
  int stopped_by = 0;
  bool timed_out = false;
  bool hopeless = false;  // as the limits say
};

using HearChild = std::function<void(std::size_t child, std::string_view text)>;

// Waits for children while passing what each says to `hear` (and its separate standard output to
// `hear_output`), and passing SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that we get on to them.
// After SIGINT, SIGTERM or SIGHUP they have the grace to end, then they are killed. Call from the
// main thread, before others are started: signals that another thread takes cannot be passed on.
WatchOfMany watch_children(const std::vector<ChildSetup>& setups, const HearChild& hear,
                           const ChildLimits& limits = {}, const HearChild& hear_output = {});

// The same for one.
Watch watch_child(const ChildSetup& setup, const std::function<void(std::string_view)>& hear,
                  double grace_seconds = 15, double limit_seconds = 0);

}  // namespace paceline

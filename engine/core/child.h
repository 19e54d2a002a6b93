// A child process in its own process group, with its standard error captured.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/environment.h"

namespace paceline {

// Of execv, ended by null: pointers into strings that live at least as long.
std::vector<char*> as_arguments(const std::vector<std::string>& words);

// The calling thread takes none: the main thread passes them on.
void block_signals();

struct ChildSetup {
  std::vector<std::string> command;  // a path and its arguments
  Environment environment;
  // By default, standard output is inherited. It can go to the captured pipe, or to a separate
  // pipe.
  bool capture_output = false, separate_output = false;
  // Of a separate output with several writers: it is a socket, which names the process of each
  // piece. Or each piece is one write of at most 4 kB, of both pipes, where a program in between
  // hides its writers.
  bool names_writers = false, keeps_writes = false;
};

// How it ended: the exit code, or the signal that killed it.
struct ChildEnd {
  int exit_code = 0;
  int signal = 0;
  bool asked_to_stop = false;  // we had asked it to stop, so the end is a consequence, not a cause
};

std::string signal_name(int signal);  // "SIGKILL"; "signal 99"

// Programs of ours begin their last line with it.
inline constexpr std::string_view kOwnName = "paceline: ";
std::string last_line(std::string_view output);  // without our name; may be empty

class Child {
 public:
  // Starts it with empty standard input. It receives SIGTERM if this process dies. Throws internal
  // if it cannot be started.
  explicit Child(const ChildSetup& setup);
  ~Child();  // kills it if it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int pipe() const { return pipe_; }
  int output_pipe() const { return output_pipe_; }  // -1: no separate pipe
  void signal(int number) noexcept;
  // Never blocks. Also kills processes that an ended child left in its process group.
  bool ended(ChildEnd& end);

 private:
  pid_t pid_ = -1;
  int pipe_ = -1, output_pipe_ = -1;
  bool reaped_ = false;
};

// Time limits of children, in seconds.
struct ChildLimits {
  double grace = 15;     // from SIGTERM to SIGKILL
  double run = 0;        // until SIGTERM; 0: no limit
  double survivors = 5;  // until SIGTERM for the others, after one child failed
  // Polled regularly. True: there is no hope, so send SIGTERM. Must not throw.
  std::function<bool()> should_give_up = {};
  double survivors_grace = 5;  // from that SIGTERM to SIGKILL; short, because they wait for nothing
  // Called for the first SIGTERM or SIGUSR1 instead of passing it on, so that children can end at a
  // suitable moment. The next signal is passed on. Empty: all are passed on.
  std::function<void(int signal)> ask_to_stop = {};
};

struct Watch {
  ChildEnd end;
  int stopped_by = 0;  // the first SIGINT, SIGTERM or SIGHUP passed on; 0: none
  bool timed_out = false;
};

struct WatchOfMany {
  std::vector<ChildEnd> ends;
  double ended_at = 0;  // when the last child ended; pipes may have been read for longer
  int stopped_by = 0;
  bool timed_out = false;
  bool gave_up = false;  // ChildLimits::should_give_up was true
};

using OnChildOutput = std::function<void(std::size_t child, std::string_view text)>;
// `writer`: the process that wrote it, where the setup asks for it.
using OnSeparateOutput =
    std::function<void(std::size_t child, std::string_view text, pid_t writer)>;

// Carries what descendants on this host write past the programs between us, which may cut lines.
class NamedPipe {
 public:
  // Nobody can write to it if the folder's file system has no named pipes.
  explicit NamedPipe(std::filesystem::path path);
  ~NamedPipe();  // removes it
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;

  int descriptor() const { return descriptor_; }  // never at its end; -1: there is none

  // Makes `descriptor` of the calling process write to the pipe, if a process of this host reads
  // it.
  static bool redirect(int descriptor, const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// What is read beside the output of children.
struct MoreOutput {
  int descriptor = -1;  // -1: none
  std::function<void(std::string_view text)> on_text;
};

// Waits for children. Passes their output to `on_text` (separate standard output to `on_output`),
// and forwards SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 to them. After SIGINT, SIGTERM or
// SIGHUP, children have the grace period to end; then they are killed. Call it from the main thread
// before starting other threads: signals delivered to other threads cannot be forwarded.
WatchOfMany watch_children(const std::vector<ChildSetup>& setups, const OnChildOutput& on_text,
                           const ChildLimits& limits = {}, const OnSeparateOutput& on_output = {},
                           const std::vector<MoreOutput>& more = {});

// The same for one child.
Watch watch_child(const ChildSetup& setup, const std::function<void(std::string_view)>& on_text,
                  double grace_seconds = 15, double limit_seconds = 0);

// From now on, descendants that lose their parent become children of this process. Call it before
// children are started: those that are there already (of a shell that called exec) are left alone.
void adopt_orphans();

// Kills all children of this process that still run after the grace period, and all that they
// leave. Only for a process that starts no other children. Returns how many it killed.
int end_orphans(double grace_seconds = 1);

// Work that may crash the process, e.g. in a library that trusts its input, is tried in a child
// first.

// Runs `work` in a forked child and rethrows its errors. Throws input, naming `what` did the work
// ("HDF5") and `where`, if the child crashes or takes longer than `seconds`. All other effects of
// `work` are lost. Call it while this process has a single thread: the child would inherit locks
// held by other threads.
void run_isolated(const std::function<void()>& work, double seconds, const std::string& what,
                  const std::string& where);

}  // namespace paceline

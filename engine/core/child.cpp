#include "engine/core/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

[[noreturn]] void fail(const char* what) {
  throw usage_error(fmt::format("{}: {}", what, std::strerror(errno)), "",
                    "check the limits on processes and open files (ulimit -a)");
}

std::vector<std::string> as_assignments(const Environment& environment) {
  return mapped(environment, [](const auto& one) { return one.first + "=" + one.second; });
}

// Between fork and exec: only calls that are safe there.
[[noreturn]] void become(char** arguments, char** environment, int error_pipe, int output,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(error_pipe, STDERR_FILENO);
  if (output != STDOUT_FILENO) dup2(output, STDOUT_FILENO);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

struct Pipe {
  int read_end = -1, write_end = -1;

  Pipe() = default;
  ~Pipe() {
    for (const int end : {read_end, write_end}) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void open(bool is_socket, bool keeps_writes) {
    int ends[2];
    const int made = is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
                               : pipe2(ends, O_CLOEXEC | (keeps_writes ? O_DIRECT : 0));
    if (made != 0) fail("cannot make a pipe");
    read_end = ends[0];
    write_end = ends[1];
    const int on = 1;
    if (is_socket) setsockopt(read_end, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  }
};

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) {
      sigaddset(&set, number);
    }
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (descriptor_ < 0) fail("cannot watch for signals");
  }
  ~BlockedSignals() {
    close(descriptor_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  int descriptor() const { return descriptor_; }
  int next() const {  // 0: none pending
    signalfd_siginfo info;
    return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                                : 0;
  }

 private:
  sigset_t before_;
  int descriptor_;
};

bool asks_to_stop(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP;
}

// False at end of file. A socket never joins what different processes wrote.
bool read_available(int pipe, const std::function<void(std::string_view, pid_t)>& on_text) {
  std::array<char, 4096> buffer;
  iovec place{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = recvmsg(pipe, &message, MSG_CMSG_CLOEXEC);
  const bool is_pipe = got < 0 && errno == ENOTSOCK;
  if (is_pipe) got = read(pipe, buffer.data(), buffer.size());
  ucred writer{};
  if (const cmsghdr* head = got > 0 && !is_pipe ? CMSG_FIRSTHDR(&message) : nullptr;
      head && head->cmsg_type == SCM_CREDENTIALS) {
    std::memcpy(&writer, CMSG_DATA(head), sizeof writer);
  }
  if (got > 0) on_text({buffer.data(), static_cast<std::size_t>(got)}, writer.pid);
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

bool readable(int descriptor, int milliseconds) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, milliseconds) > 0;
}

// Children with what is still to be done to them.
class ProcessGroup {
 public:
  ProcessGroup(const std::vector<ChildSetup>& setups, const ChildLimits& limits,
               const OnChildOutput& on_text, const OnSeparateOutput& on_output,
               const std::vector<MoreOutput>& more)
      : limits_(limits) {
    for (std::size_t i = 0; i < setups.size(); ++i) {
      const auto& child = *children_.emplace_back(std::make_unique<Child>(setups[i]));
      sources_.push_back({child.pipe(), [&on_text, i](std::string_view text, pid_t) {
                            if (on_text) on_text(i, text);
                          }});
      if (child.output_pipe() < 0) continue;
      sources_.push_back({child.output_pipe(), [&on_output, i](std::string_view text, pid_t from) {
                            if (on_output) on_output(i, text, from);
                          }});
    }
    for (const MoreOutput& each : more) {
      if (each.descriptor < 0) continue;
      sources_.push_back(
          {each.descriptor, [&each](std::string_view text, pid_t) { each.on_text(text); }, 0});
    }
    ends_.resize(setups.size());
    ended_.resize(setups.size());
    if (limits.run > 0) limit_at_ = now_seconds() + limits.run;
  }

  bool all_ended() {
    bool all = true;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (!ended_[i] && children_[i]->ended(ends_[i])) {
        ended_[i] = true;
        const bool badly = ends_[i].exit_code != 0 || ends_[i].signal != 0;
        if (badly) survivors_at_ = std::min(survivors_at_, now_seconds() + limits_.survivors);
      }
      all = all && ended_[i];
    }
    return all;
  }

  // Until somebody says something, a signal comes, or half a second has passed.
  void wait_and_read(int signals) {
    std::vector<pollfd> entries = {{signals, POLLIN, 0}};
    for (const Source& source : sources_) {
      entries.push_back({source.is_open ? source.pipe : -1, POLLIN, 0});
    }
    poll(entries.data(), entries.size(), 500);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (entries[i + 1].revents != 0) read_from(sources_[i]);
    }
  }

  // What was said before the end is there already. A grandchild may hold the pipe open, or go on
  // for ever.
  void read_rest() {
    constexpr double kMostSeconds = 1;
    const double until = now_seconds() + kMostSeconds;
    for (Source& source : sources_) {
      while (source.is_open && now_seconds() < until && readable(source.pipe, source.last_wait))
        read_from(source);
    }
  }

  void signal(int number) noexcept {
    for (const auto& child : children_) child->signal(number);
  }

  // Those that still run have the grace to end.
  void stop(int number) { stop(number, limits_.grace); }

  void stop(int number, double grace) {
    signal(number);
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (!ended_[i]) ends_[i].asked_to_stop = true;
    }
    kill_at_ = std::min(kill_at_, now_seconds() + grace);
  }

  // True where the limit of the run has just passed.
  bool enforce() {
    const double now = now_seconds();
    const bool timed_out = now > limit_at_, survivors_late = now > survivors_at_;
    if (timed_out) limit_at_ = kNever;
    if (survivors_late) survivors_at_ = kNever;
    if (!gave_up_ && limits_.should_give_up && limits_.should_give_up()) {
      gave_up_ = true;
      stop(SIGTERM, limits_.survivors_grace);
    }
    if (survivors_late) stop(SIGTERM, limits_.survivors_grace);
    if (timed_out) stop(SIGTERM);
    if (now > kill_at_) signal(SIGKILL);
    return timed_out;
  }

  const std::vector<ChildEnd>& ends() const { return ends_; }
  bool gave_up() const { return gave_up_; }

 private:
  struct Source {
    int pipe;
    std::function<void(std::string_view, pid_t)> on_text;
    int last_wait = 100;  // milliseconds, after the end of all children
    bool is_open = true;
  };

  static void read_from(Source& source) {
    source.is_open = read_available(source.pipe, source.on_text);
  }

  ChildLimits limits_;
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<Source> sources_;
  std::vector<ChildEnd> ends_;
  std::vector<bool> ended_;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double limit_at_ = kNever, survivors_at_ = kNever;  // SIGTERM
  double kill_at_ = kNever;
  bool gave_up_ = false;
};

std::vector<pid_t> children_of_process() {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

// Children of the shell that became this process by exec: its background jobs are not ended.
std::vector<pid_t>& inherited_children() {
  static std::vector<pid_t> children;
  return children;
}

std::vector<pid_t> own_children() {
  std::vector<pid_t> children = children_of_process();
  std::erase_if(children, [](pid_t child) {
    return std::ranges::find(inherited_children(), child) != inherited_children().end();
  });
  return children;
}

int reap_those_that_ended() {
  int reaped = 0;
  while (waitpid(-1, nullptr, WNOHANG) > 0) ++reaped;
  return reaped;
}

}  // namespace

std::vector<char*> as_arguments(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string last_line(std::string_view output) {
  output = trim(output);
  output.remove_prefix(output.rfind('\n') + 1);  // npos + 1 is 0
  if (output.starts_with(kOwnName)) output.remove_prefix(kOwnName.size());
  return std::string(output);
}

Child::Child(const ChildSetup& setup) {
  Pipe errors, output;
  errors.open(false, setup.keeps_writes);
  if (setup.separate_output) output.open(setup.names_writers, setup.keeps_writes);
  const auto assignments = as_assignments(setup.environment);
  const auto arguments = as_arguments(setup.command);
  const auto environment = as_arguments(assignments);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    const int to = setup.separate_output  ? output.write_end
                   : setup.capture_output ? errors.write_end
                                          : STDOUT_FILENO;
    become(const_cast<char**>(arguments.data()), const_cast<char**>(environment.data()),
           errors.write_end, to, parent);
  }
  if (pid_ < 0) fail("cannot start a process");
  setpgid(pid_, pid_);  // here too, so that signal() finds the group at once
  pipe_ = std::exchange(errors.read_end, -1);
  output_pipe_ = std::exchange(output.read_end, -1);
}

Child::~Child() {
  if (!reaped_) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(pipe_);
  if (output_pipe_ >= 0) close(output_pipe_);
}

void Child::signal(int number) noexcept {
  if (!reaped_) kill(-pid_, number);
}

bool Child::ended(ChildEnd& end) {
  if (reaped_) return true;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 &&
      info.si_pid == pid_) {
    log::warning("process {} is stopped by {} and waited for; continue it: kill -CONT {}", pid_,
                 signal_name(info.si_status), pid_);
  }
  info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid_) {
    return false;
  }
  signal(SIGKILL);  // before it is reaped, while the number of its group cannot be another's
  int status = 0;
  waitpid(pid_, &status, 0);
  reaped_ = true;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  return true;
}

NamedPipe::NamedPipe(std::filesystem::path path) : path_(std::move(path)) {
  if (mkfifo(path_.c_str(), 0600) != 0) return;
  // A writer of our own: readers of a pipe without any are told of its end.
  descriptor_ = open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

NamedPipe::~NamedPipe() {
  if (descriptor_ >= 0) close(descriptor_);
  unlink(path_.c_str());
}

bool NamedPipe::redirect(int descriptor, const std::filesystem::path& path) {
  // Fails if there is no reader, instead of waiting for one.
  const int pipe = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (pipe < 0) return false;
  struct stat status {};
  const bool is_pipe = fstat(pipe, &status) == 0 && S_ISFIFO(status.st_mode);
  const bool redirected = is_pipe && fcntl(pipe, F_SETFL, 0) == 0 && dup2(pipe, descriptor) >= 0;
  close(pipe);
  return redirected;
}

WatchOfMany watch_children(const std::vector<ChildSetup>& setups, const OnChildOutput& on_text,
                           const ChildLimits& limits, const OnSeparateOutput& on_output,
                           const std::vector<MoreOutput>& more) {
  const BlockedSignals signals;
  ProcessGroup group(setups, limits, on_text, on_output, more);
  WatchOfMany watch;
  bool asked = false;
  while (!group.all_ended()) {
    group.wait_and_read(signals.descriptor());
    while (const int number = signals.next()) {
      if (number == SIGCHLD) continue;
      if (limits.ask_to_stop && !asked && (number == SIGTERM || number == SIGUSR1)) {
        asked = true;
        limits.ask_to_stop(number);
        continue;
      }
      if (asks_to_stop(number) && watch.stopped_by == 0) {
        watch.stopped_by = number;
        group.stop(number);
      } else {
        group.signal(number);
      }
    }
    if (group.enforce()) watch.timed_out = true;
  }
  watch.ended_at = now_seconds();
  group.read_rest();
  watch.ends = group.ends();
  watch.gave_up = group.gave_up();
  return watch;
}

Watch watch_child(const ChildSetup& setup, const std::function<void(std::string_view)>& on_text,
                  double grace_seconds, double limit_seconds) {
  const ChildLimits limits{grace_seconds, limit_seconds};
  const auto watch = watch_children(
      {setup}, [&](std::size_t, std::string_view text) { on_text(text); }, limits);
  return {watch.ends.front(), watch.stopped_by, watch.timed_out};
}

void adopt_orphans() {
  inherited_children() = children_of_process();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int end_orphans(double grace_seconds) {
  constexpr double kMostSeconds = 10;  // one that waits for a dead disk cannot be killed
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const double start = now_seconds();
  int killed = 0;
  reap_those_that_ended();
  while (!own_children().empty() && now_seconds() < start + grace_seconds) {
    pause();
    reap_those_that_ended();
  }
  const double until = now_seconds() + kMostSeconds;
  for (auto children = own_children(); !children.empty() && now_seconds() < until;
       children = own_children()) {
    for (const pid_t child : children) kill(child, SIGKILL);
    pause();
    killed += reap_those_that_ended();
  }
  return killed;
}

}  // namespace paceline

#include "analysis/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "engine/core/error.h"

extern char** environ;

namespace paceline {

namespace {

constexpr std::size_t kMostMessages = 4096;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) {
      throw Error(ErrorKind::internal, std::string("no pipe: ") + std::strerror(errno));
    }
  }
  ~Pipe() {
    close(ends_[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }

 private:
  int ends_[2] = {-1, -1};
};

class SpawnActions {
 public:
  SpawnActions(const char* output, int messages) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC,
                                     0644);
    posix_spawn_file_actions_adddup2(&actions_, messages, STDERR_FILENO);
  }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// Reads until the child closes its end. False: the deadline came first.
bool read_messages(int reader, double deadline_seconds, std::string& messages) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(deadline_seconds);
  char buffer[1024];
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready{reader, POLLIN, 0};
    const int polled = poll(&ready, 1, static_cast<int>(left));
    if (polled < 0 && errno != EINTR) return false;
    if (polled <= 0) continue;
    const ssize_t n = read(reader, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    messages.append(buffer, static_cast<std::size_t>(n));
    if (messages.size() > kMostMessages) messages.resize(kMostMessages);
  }
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& words, double deadline_seconds,
                   const std::filesystem::path& output) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ChildEnd end;
  Pipe pipe;
  const SpawnActions actions(output.c_str(), pipe.writer());
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (failed != 0) {
    end.found = false;
    end.messages = std::strerror(failed);
    return end;
  }
  pipe.close_writer();
  end.in_time = read_messages(pipe.reader(), deadline_seconds, end.messages);
  if (!end.in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace paceline

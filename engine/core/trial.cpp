#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr char kFix[] = "get the file again, or in another format";

// What the child says: an ErrorKind as a byte, and the line. Silence: all is well.
std::string run_and_encode_error(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (...) {
    const Error error = caught_error();
    return static_cast<char>(error.kind()) + std::string(error.what());
  }
}

[[noreturn]] void be_child(const std::function<void()>& work, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const std::string words = run_and_encode_error(work);
  std::size_t at = 0;
  while (at < words.size()) {
    const ssize_t written = write(pipe, words.data() + at, words.size() - at);
    if (written <= 0) break;
    at += static_cast<std::size_t>(written);
  }
  _exit(0);
}

// False: not within the time.
bool read_reply(int pipe, double seconds, std::string& words) {
  const double end = now_seconds() + seconds;
  for (double left = seconds; left > 0; left = end - now_seconds()) {
    pollfd entry{pipe, POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(std::min(left, 60.0) * 1000) + 1) <= 0) continue;
    std::array<char, 4096> part;
    const ssize_t got = read(pipe, part.data(), part.size());
    if (got == 0) return true;
    if (got > 0) words.append(part.data(), static_cast<std::size_t>(got));
  }
  return false;
}

}  // namespace

void run_isolated(const std::function<void()>& work, double seconds, const std::string& what,
                  const std::string& where) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw usage_error(fmt::format("no pipe could be made: {}", std::strerror(errno)), "",
                      "check the limits on processes and open files (ulimit -a)");
  }
  const pid_t child = fork();
  if (child == 0) be_child(work, ends[1]);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw usage_error(fmt::format("no process could be started: {}", std::strerror(errno)), "",
                      "check the limits on processes and open files (ulimit -a)");
  }
  std::string words;
  const bool in_time = read_reply(ends[0], seconds, words);
  close(ends[0]);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    throw input_error(
        fmt::format("the file is damaged: {} did not finish reading it within {:.0f} s", what,
                    seconds),
        where, kFix);
  }
  if (!words.empty()) throw Error(static_cast<ErrorKind>(words[0]), words.substr(1));
  if (status != 0) {
    throw input_error(fmt::format("the file is damaged: {} crashed while reading it", what), where,
                      kFix);
  }
}

}  // namespace paceline

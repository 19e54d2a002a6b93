#include "engine/launch/stop_requests.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"

namespace paceline {

namespace {

constexpr char kRequestFile[] = "stop";

int left_request(const std::filesystem::path& folder) {
  if (folder.empty()) return 0;
  int signal = 0;
  std::ifstream(folder / kRequestFile) >> signal;
  return signal;
}

}  // namespace

StopRequests::StopRequests(std::filesystem::path folder) : folder_(std::move(folder)) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) {
    const int code = errno;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw Error(ErrorKind::internal, fmt::format("cannot watch for signals: {}", strerror(code)),
                "", "check the limit on open files (ulimit -n)");
  }
}

StopRequests::~StopRequests() {
  pending();  // takes what would end the process now
  close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int StopRequests::pending() {
  std::lock_guard lock(mutex_);
  signalfd_siginfo info;
  while (read(descriptor_, &info, sizeof info) == sizeof info) {
    if (signal_ == 0) signal_ = static_cast<int>(info.ssi_signo);
  }
  if (signal_ == 0) signal_ = left_request(folder_);
  return signal_;
}

void leave_request(const std::filesystem::path& folder, int signal) {
  replace_file(folder / kRequestFile, std::to_string(signal));
}

}  // namespace paceline

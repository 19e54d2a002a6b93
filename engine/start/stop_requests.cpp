#include "engine/start/stop_requests.h"

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
#include "engine/failure/rank_status.h"

namespace paceline {

namespace {

int left_request(const std::filesystem::path& file) {
  if (file.empty()) return 0;
  int signal = 0;
  std::ifstream(file) >> signal;
  return signal;
}

}  // namespace

StopRequests::StopRequests(std::filesystem::path file) : file_(std::move(file)) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) {
    const int code = errno;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw Error(ErrorKind::internal, fmt::format("signals cannot be watched: {}", strerror(code)),
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
  if (signal_ == 0) signal_ = left_request(file_);
  return signal_;
}

std::filesystem::path request_file(const std::filesystem::path& folder,
                                   const std::string& attempt) {
  return folder / ("stop-" + attempt);
}

std::filesystem::path request_file(const Environment& environment) {
  const auto folder = status_folder(environment);
  const auto attempt = environment.find(kStarterVariable);
  if (!folder || attempt == environment.end()) return {};
  return request_file(*folder, attempt->second);
}

void write_stop_request(const std::filesystem::path& file, int signal) {
  replace_file(file, std::to_string(signal));
}

}  // namespace paceline

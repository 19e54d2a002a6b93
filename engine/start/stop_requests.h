// SIGTERM and SIGUSR1 as requests: a run that can be stopped at a good moment looks for them
// between steps.
#pragma once

#include <csignal>
#include <filesystem>
#include <mutex>
#include <string>

#include "engine/core/environment.h"

namespace paceline {

class StopRequests {
 public:
  // From here on these signals no longer end this process. To be made before other threads are, on
  // the main thread. `file`: where the starter of this rank may leave the request, as no launcher
  // passes all signals on; empty: it has none.
  explicit StopRequests(std::filesystem::path file);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  // The first that came, or 0. From any thread.
  int pending();

 private:
  std::filesystem::path file_;
  sigset_t before_;
  int descriptor_ = -1;
  std::mutex mutex_;
  int signal_ = 0;
};

// For the ranks of one attempt (status.h), in their status folder.
std::filesystem::path request_file(const std::filesystem::path& folder, const std::string& attempt);
// The one of this rank; empty where no starter of ours started it.
std::filesystem::path request_file(const Environment& environment);
void leave_request(const std::filesystem::path& file, int signal);

}  // namespace paceline

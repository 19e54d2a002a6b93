// SIGTERM and SIGUSR1 as stop requests, which a run polls between steps.
#pragma once

#include <csignal>
#include <filesystem>
#include <mutex>
#include <string>

#include "engine/core/environment.h"

namespace paceline {

class StopRequests {
 public:
  // From now on these signals do not end the process. Construct it on the main thread, before other
  // threads. `file`: where the starter may leave the request, because launchers do not forward all
  // signals; empty: none.
  explicit StopRequests(std::filesystem::path file);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  // The first signal received, or 0. Thread-safe.
  int pending();

 private:
  std::filesystem::path file_;
  sigset_t before_;
  int descriptor_ = -1;
  std::mutex mutex_;
  int signal_ = 0;
};

// For the ranks of one attempt (rank_status.h), in their status folder.
std::filesystem::path request_file(const std::filesystem::path& folder, const std::string& attempt);
// For this rank. Empty without a Paceline starter.
std::filesystem::path request_file(const Environment& environment);
void write_stop_request(const std::filesystem::path& file, int signal);

}  // namespace paceline

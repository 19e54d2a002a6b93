// SIGTERM and SIGUSR1 as requests: a run that can be stopped at a good moment looks for them
// between steps.
#pragma once

#include <csignal>
#include <filesystem>
#include <mutex>

namespace paceline {

class StopRequests {
 public:
  // From here on these signals no longer end this process. To be made before other threads are, on
  // the main thread. `folder`: where the starter of this rank may leave the request
  // (leave_request), as no launcher passes all signals on; empty: it has none.
  explicit StopRequests(std::filesystem::path folder);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  // The first that came, or 0. From any thread.
  int pending();

 private:
  std::filesystem::path folder_;
  sigset_t before_;
  int descriptor_ = -1;
  std::mutex mutex_;
  int signal_ = 0;
};

// In the run folder of the ranks that this process started.
void leave_request(const std::filesystem::path& folder, int signal);

}  // namespace paceline

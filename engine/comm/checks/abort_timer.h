// Aborts a communicator after some seconds, from a background thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "engine/comm/communicator.h"

namespace paceline {

class AbortTimer {
 public:
  // Aborts `communicator` with `why`, unless destroyed within `seconds`.
  AbortTimer(Communicator& communicator, double seconds, std::string why);
  ~AbortTimer();
  AbortTimer(const AbortTimer&) = delete;
  AbortTimer& operator=(const AbortTimer&) = delete;

  bool has_passed() const { return passed_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::atomic<bool> passed_{false};
  std::thread thread_;
};

}  // namespace paceline

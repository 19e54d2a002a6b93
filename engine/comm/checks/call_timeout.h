// A timeout for calls that cannot be polled: a thread acts when a call exceeds the deadline.
#pragma once

#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "engine/comm/communicator.h"
#include "engine/core/error.h"

namespace paceline {

class CallTimeout {
 public:
  // When a call exceeds deadlines.limit_seconds(), `expired` runs once, on the timeout's thread,
  // with the call's label. It must abort the communicator or, where that does not end the call, end
  // the process.
  CallTimeout(const Deadlines& deadlines, std::function<void(const std::string& label)> expired);
  CallTimeout(const CallTimeout&) = delete;
  CallTimeout& operator=(const CallTimeout&) = delete;

  // Watches a call from construction to destruction. One at a time.
  class Call {
   public:
    Call(CallTimeout& call_timeout, std::string_view label);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallTimeout& call_timeout_;
  };

 private:
  void watch(const std::stop_token& stop);

  Deadlines deadlines_;
  std::function<void(const std::string&)> expired_;
  std::mutex mutex_;
  double since_ = 0;  // start of the watched call; 0: none
  std::string_view label_;
  std::jthread thread_;  // last: it ends first
};

class LivenessConnection;

// Why a library's collective `call` ends past its deadline: stall, with the ranks that are late if
// `control` (may be null) knows them. The library itself does not say.
Error timeout_error(std::string_view call, const Deadlines& deadlines, LivenessConnection* control,
                    std::string_view label);

}  // namespace paceline

// Ends calls that cannot be polled: a thread that acts where a call outlasts the deadline.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "engine/comm/communicator.h"

namespace paceline {

class CallTimeout {
 public:
  // `expired` runs on the call timeout's thread, once, with the label of the call that outlasted
  // deadlines.limit_seconds(). It must not return to the call: there is nothing to return to.
  CallTimeout(const Deadlines& deadlines, std::function<void(const std::string& label)> expired);
  ~CallTimeout();
  CallTimeout(const CallTimeout&) = delete;
  CallTimeout& operator=(const CallTimeout&) = delete;

  // The call is watched from construction to destruction. One at a time.
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
  void watch();

  Deadlines deadlines_;
  std::function<void(const std::string&)> expired_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  double since_ = 0;  // of the call that is watched; 0: none
  std::string_view label_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace paceline

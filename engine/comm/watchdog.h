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

class Watchdog {
 public:
  // `expired` runs on the watchdog's thread, once, with the label of the call that outlasted
  // deadlines.limit_seconds(). It must not return to the call: there is nothing to return to.
  Watchdog(const Deadlines& deadlines, std::function<void(const std::string& label)> expired);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The call is watched from construction to destruction. One at a time.
  class Call {
   public:
    Call(Watchdog& watchdog, std::string_view label);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Watchdog& watchdog_;
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

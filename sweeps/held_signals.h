// While it exists, SIGINT, SIGTERM and SIGHUP are blocked until polled: between two runs they must
// not end this process in the middle of a record.
#pragma once

#include <csignal>

namespace paceline {

class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, number);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Removes and returns a pending one. 0: none.
  int take() {
    const timespec now{0, 0};
    const int number = sigtimedwait(&set_, nullptr, &now);
    return number > 0 ? number : 0;
  }

 private:
  sigset_t set_, before_;
};

}  // namespace paceline

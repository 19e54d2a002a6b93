#include "engine/comm/watchdog.h"

#include <chrono>
#include <utility>

#include "engine/core/clock.h"

namespace paceline {

Watchdog::Watchdog(const Deadlines& deadlines, std::function<void(const std::string&)> expired)
    : deadlines_(deadlines), expired_(std::move(expired)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

// Calls do not wake the thread, which looks now and then: that keeps them cheap.
void Watchdog::watch() {
  const auto interval = std::chrono::duration<double>(deadlines_.abort_seconds / 20);
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, interval, [this] { return stop_; })) {
    if (since_ == 0 || now_seconds() - since_ < deadlines_.limit_seconds()) continue;
    const std::string label(label_);
    lock.unlock();
    expired_(label);
    return;
  }
}

Watchdog::Call::Call(Watchdog& watchdog, std::string_view label) : watchdog_(watchdog) {
  std::lock_guard lock(watchdog_.mutex_);
  watchdog_.since_ = now_seconds();
  watchdog_.label_ = label;
}

Watchdog::Call::~Call() {
  std::lock_guard lock(watchdog_.mutex_);
  watchdog_.since_ = 0;
}

}  // namespace paceline

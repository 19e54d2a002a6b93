#include "engine/train/checkpoint/background.h"

#include <chrono>
#include <utility>

#include "engine/core/binding.h"
#include "engine/core/clock.h"

namespace paceline {

Background::~Background() {
  join();
}

void Background::join() noexcept {
  if (!thread_.joinable()) return;
  thread_.join();
  seconds_ += std::exchange(last_seconds_, 0);
}

void Background::wait() {
  join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool Background::is_done_within(double seconds) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !busy_; });
}

void Background::start(std::function<void()> job) {
  wait();
  busy_ = true;
  thread_ = std::thread([this, job = std::move(job)] {
    const double start = now_seconds();
    try {
      name_this_thread("checkpoint");
      bind_to_cpus(cpus_);
      job();
    } catch (...) {
      error_ = std::current_exception();
    }
    last_seconds_ = now_seconds() - start;
    {
      std::lock_guard lock(mutex_);
      busy_ = false;
    }
    done_.notify_all();
  });
}

}  // namespace paceline

#include "engine/train/checkpoint/background.h"

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

void Background::start(std::function<void()> job) {
  wait();
  busy_ = true;
  thread_ = std::thread([this, job = std::move(job)] {
    const double start = now_seconds();
    try {
      bind_to_any_of(cpus_);
      job();
    } catch (...) {
      error_ = std::current_exception();
    }
    last_seconds_ = now_seconds() - start;
    busy_ = false;
  });
}

}  // namespace paceline

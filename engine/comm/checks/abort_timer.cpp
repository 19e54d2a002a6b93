#include "engine/comm/checks/abort_timer.h"

#include <chrono>

namespace paceline {

AbortTimer::AbortTimer(Communicator& communicator, double seconds, std::string why)
    : thread_([this, &communicator, seconds, why = std::move(why)] {
        std::unique_lock lock(mutex_);
        const std::chrono::duration<double> limit(seconds);
        if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
        passed_ = true;
        communicator.abort(why);
      }) {}

AbortTimer::~AbortTimer() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace paceline

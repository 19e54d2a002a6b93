// A counting semaphore.
//
// std::counting_semaphore of libstdc++ 12 occasionally loses a release, and waiters sleep forever
// (GCC bug 104928).
#pragma once

#include <condition_variable>
#include <mutex>

namespace paceline {

class Semaphore {
 public:
  explicit Semaphore(int count) : free_(count) {}

  void acquire() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      ++free_;
    }
    freed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  int free_;
};

// Holds one permit.
class Permit {
 public:
  explicit Permit(Semaphore& permits) : permits_(permits) { permits_.acquire(); }
  ~Permit() { permits_.release(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  Semaphore& permits_;
};

}  // namespace paceline

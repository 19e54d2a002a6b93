// One job at a time beside the training.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace paceline {

class Background {
 public:
  // The thread runs on any of these CPUs; empty: where the caller of start() may.
  explicit Background(std::vector<int> cpus) : cpus_(std::move(cpus)) {}
  ~Background();  // waits
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Waits for the job before and throws what it threw.
  void start(std::function<void()> job);
  void wait();
  // Whether it is done, after `seconds` at the latest.
  bool is_done_within(double seconds);
  bool busy() const { return busy_.load(); }
  double seconds() const { return seconds_; }  // of all jobs that were waited for

 private:
  void join() noexcept;

  std::vector<int> cpus_;
  std::thread thread_;
  std::atomic<bool> busy_{false};
  std::mutex mutex_;
  std::condition_variable done_;
  double seconds_ = 0, last_seconds_ = 0;
  std::exception_ptr error_;
};

}  // namespace paceline

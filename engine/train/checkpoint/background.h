// One job at a time beside the training.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
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
  bool busy() const { return busy_.load(); }
  double seconds() const { return seconds_; }  // of all jobs that were waited for

 private:
  void join() noexcept;

  std::vector<int> cpus_;
  std::thread thread_;
  std::atomic<bool> busy_{false};
  double seconds_ = 0, last_seconds_ = 0;
  std::exception_ptr error_;
};

}  // namespace paceline

// Runs one job at a time concurrently with training.
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
  // CPUs of the thread. Empty: those of the caller of start().
  explicit Background(std::vector<int> cpus) : cpus_(std::move(cpus)) {}
  ~Background();  // waits
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Waits for the previous job and throws its error, then starts `job`.
  void start(std::function<void()> job);
  void wait();
  // Waits at most `seconds` for the job. True: it is done.
  bool is_done_within(double seconds);
  bool busy() const { return busy_.load(); }
  double seconds() const { return seconds_; }  // of all finished jobs

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

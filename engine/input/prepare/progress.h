// Progress of a long operation: a moving line on a terminal, else a line every 10 s.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

namespace paceline {

class PrepareProgress {
 public:
  enum class Unit { bytes, images };

  // Writes to standard error, unless `quiet`. `before`: amount done by earlier calls.
  PrepareProgress(std::string what, double total, Unit unit, bool quiet, double before = 0);
  ~PrepareProgress();  // ends the terminal line
  PrepareProgress(const PrepareProgress&) = delete;
  PrepareProgress& operator=(const PrepareProgress&) = delete;

  // Reports `done` of `total`. Thread-safe.
  void at(double done);
  void add(double more);

 private:
  using Clock = std::chrono::steady_clock;

  void show(Clock::time_point now);

  std::string what_;
  double total_, done_, before_;
  Unit unit_;
  bool quiet_, terminal_, shown_ = false;
  Clock::time_point began_, last_;
  std::mutex mutex_;
};

}  // namespace paceline

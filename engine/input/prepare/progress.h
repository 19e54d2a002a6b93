// How far a long piece of work is: one moving line on a terminal, elsewhere a line every 10 s.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

namespace paceline {

class PrepareProgress {
 public:
  enum class Unit { bytes, images };

  // To standard error; a quiet one says nothing. `before`: what an earlier call had done already.
  PrepareProgress(std::string what, double total, Unit unit, bool quiet, double before = 0);
  ~PrepareProgress();  // leaves the terminal on a line of its own
  PrepareProgress(const PrepareProgress&) = delete;
  PrepareProgress& operator=(const PrepareProgress&) = delete;

  // From any thread. `done` of `total`.
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

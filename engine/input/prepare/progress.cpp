#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/input/prepare/staged_folder.h"

namespace paceline {

namespace {

using std::chrono::duration;

constexpr duration<double> kOnTerminal(0.2), kElsewhere(10);

std::string amount(double value, PrepareProgress::Unit unit) {
  return unit == PrepareProgress::Unit::bytes ? format_bytes(value) : fmt::format("{:.0f}", value);
}

}  // namespace

PrepareProgress::PrepareProgress(std::string what, double total, Unit unit, bool quiet,
                                 double before)
    : what_(std::move(what)),
      total_(total),
      done_(before),
      before_(before),
      unit_(unit),
      quiet_(quiet),
      terminal_(is_terminal(STDERR_FILENO)),
      began_(Clock::now()),
      last_(began_) {}

PrepareProgress::~PrepareProgress() {
  if (terminal_ && shown_) clear_moving_line();
}

void PrepareProgress::at(double done) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  const auto now = Clock::now();
  if (quiet_ || now - last_ < (terminal_ ? kOnTerminal : kElsewhere)) return;
  last_ = now;
  show(now);
}

void PrepareProgress::add(double more) {
  double done = 0;
  {
    const std::lock_guard lock(mutex_);
    done = done_ + more;
    done_ = done;
  }
  at(done);
}

void PrepareProgress::show(Clock::time_point now) {
  const double seconds = duration<double>(now - began_).count();
  const double rate = (done_ - before_) / std::max(seconds, 1e-9);
  std::string line = fmt::format("{}: {} of {} ({:.0f} %)", what_, amount(done_, unit_),
                                 amount(total_, unit_), 100 * done_ / std::max(total_, 1.0));
  if (rate > 0) {
    line += fmt::format(", {}{}/s, about {} left", amount(rate, unit_),
                        unit_ == Unit::images ? " images" : "",
                        format_seconds(std::max(total_ - done_, 0.0) / rate));
  }
  if (terminal_) {
    print_moving_line(line);
  } else {
    print_note("{}\n", line);
  }
  shown_ = true;
}

void work_on(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  FirstError first;
  const auto run = [&]() noexcept {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        first.keep();
        next = count;
      }
    }
  };
  const std::size_t others = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  {
    std::vector<std::jthread> pool;
    for (std::size_t t = 1; t < others; ++t) pool.emplace_back(run);
    run();
  }
  first.rethrow();
}

}  // namespace paceline

#include "engine/train/phase_clock.h"

#include "engine/core/clock.h"

namespace paceline {

PhaseClock::PhaseClock(std::size_t steps, Lane& lane)
    : lane_(lane), by_markers_(lane.keeps_time()), timeline_(lane) {
  steps_.reserve(steps);
}

void PhaseClock::begin_step() {
  if (by_markers_) {
    const bool follows = std::exchange(follows_, true) && !pending_.empty();
    pending_.push_back({follows ? pending_.back().ends.back().second : lane_.mark(), {}});
    return;
  }
  start_ = last_ = now_seconds();
  current_ = StepTimes{};
}

void PhaseClock::end(Phase phase) {
  if (by_markers_) {
    pending_.back().ends.emplace_back(phase, lane_.mark());
    return;
  }
  const double now = now_seconds();
  current_.seconds[static_cast<std::size_t>(phase)] += static_cast<float>(now - last_);
  if (trace_) trace_->note(kPhaseNames[static_cast<std::size_t>(phase)], last_, now, step_number());
  last_ = now;
}

void PhaseClock::end_step() {
  end(Phase::other);
  if (by_markers_) {
    while (pending_.size() > 1 && lane_.reached(pending_.front().ends.back().second)) {
      note(pending_.front());
      pending_.pop_front();
    }
    return;
  }
  current_.total = static_cast<float>(last_ - start_);
  if (trace_) trace_->note("step", start_, last_, step_number());
  steps_.push_back(current_);
}

void PhaseClock::note(const Pending& pending) {
  StepTimes times;
  Marker from = pending.begin;
  const double begin = trace_ ? timeline_.time_at(from) : 0;
  double before = begin;
  for (const auto& [phase, marker] : pending.ends) {
    const auto seconds = static_cast<float>(lane_.seconds_between(from, marker));
    times.seconds[static_cast<std::size_t>(phase)] += seconds;
    times.total += seconds;
    from = marker;
    if (!trace_) continue;
    const double at = timeline_.time_at(marker);
    trace_->note(kPhaseNames[static_cast<std::size_t>(phase)], before, at, step_number());
    before = at;
  }
  if (trace_) trace_->note("step", begin, before, step_number());
  steps_.push_back(times);
}

void PhaseClock::trace(TraceRing* ring, std::size_t step) {
  trace_ = ring;
  first_traced_ = step - steps_.size();
}

void PhaseClock::anchor() {
  if (!trace_ || !by_markers_) return;
  settle();
  timeline_.anchor();
}

void PhaseClock::settle() {
  if (by_markers_) lane_.drain();
  for (const Pending& pending : pending_) note(pending);
  pending_.clear();
}

const std::vector<StepTimes>& PhaseClock::steps() {
  settle();
  return steps_;
}

}  // namespace paceline

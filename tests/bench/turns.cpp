#include "tests/bench/turns.h"

#include <algorithm>
#include <vector>

#include "engine/core/clock.h"

namespace paceline::bench {

namespace {

constexpr double kTurnSeconds = 1e-3;
constexpr double kMostCalls = 1e5;

template <typename Call>
double to_seconds(std::size_t calls, const Call& call) {
  const double start = now_seconds();
  for (std::size_t i = 0; i < calls; ++i) call();
  return now_seconds() - start;
}

// Of the second of two, the first may fault pages in or fill caches.
template <typename Call>
std::size_t calls_of_a_turn(const Call& call) {
  call();
  return static_cast<std::size_t>(
      std::clamp(kTurnSeconds / std::max(to_seconds(1, call), 1e-9), 1.0, kMostCalls));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void take_turns(benchmark::State& state, const std::function<void()>& work, double amount,
                Bound& bound) {
  double done = 0;
  const auto bounded = [&] { done += bound.run(); };
  const std::size_t calls = calls_of_a_turn(work), bound_calls = calls_of_a_turn(bounded);
  std::vector<double> ratios;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(calls))) {
    work();
    const double seconds = to_seconds(calls, work);
    state.SetIterationTime(seconds);
    bounded();
    done = 0;
    const double bound_seconds = to_seconds(bound_calls, bounded);
    ratios.push_back(bound_seconds / done * amount / (seconds / static_cast<double>(calls)));
  }
  state.counters["bound"] = median(std::move(ratios));
}

void take_turns(benchmark::State& state, const std::function<void()>& work) {
  const std::size_t calls = calls_of_a_turn(work);
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(calls))) {
    state.SetIterationTime(to_seconds(calls, work));
  }
}

}  // namespace paceline::bench

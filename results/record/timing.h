// Duration, speed, and time by phase of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record/bounds.h"

namespace paceline {

// Of one rank, excluding the warm-up.
struct StepQuantiles {
  std::optional<double> p05, p50, p95, p99, max;

  template <typename Each>
  void fields(Each& each) {
    each("p05", p05);
    each("p50", p50);
    each("p95", p95);
    each("p99", p99);
    each("max", max);
  }
};

struct Timing {
  std::optional<double> fit_seconds, first_epoch_seconds;
  std::vector<double> epoch_seconds;
  std::optional<double> evaluation_seconds, checkpoint_seconds, events_seconds, consistency_seconds;
  std::optional<double> setup_seconds, compile_seconds;
  std::optional<std::int64_t> warmup_steps_excluded;
  std::vector<StepQuantiles> step_seconds;  // one per rank

  double whole_seconds() const;  // the fit and everything around it, as far as known

  template <typename Each>
  void fields(Each& each) {
    each("fit_seconds", fit_seconds, kPositive);
    each("first_epoch_seconds", first_epoch_seconds);
    each("epoch_seconds", epoch_seconds);
    each("evaluation_seconds", evaluation_seconds);
    each("checkpoint_seconds", checkpoint_seconds);
    each("events_seconds", events_seconds);
    each("consistency_seconds", consistency_seconds);
    each("setup_seconds", setup_seconds);
    each("compile_seconds", compile_seconds);
    each("warmup_steps_excluded", warmup_steps_excluded);
    each("step_seconds", step_seconds);
  }
};

struct Throughput {
  std::optional<double> samples_per_second;
  std::optional<std::int64_t> warmup_steps_excluded;
  std::optional<double> samples, steps;  // a published mean of steps need not be whole

  template <typename Each>
  void fields(Each& each) {
    each("samples_per_second", samples_per_second, kPositive);
    each("warmup_steps_excluded", warmup_steps_excluded);
    each("samples", samples);
    each("steps", steps);
  }
};

// Of one rank, in the whole fit.
struct PhaseSeconds {
  double input = 0, forward = 0, backward = 0, communication = 0, update = 0, other = 0, step = 0;
  double communication_hidden = 0;

  template <typename Each>
  void fields(Each& each) {
    each("input", input);
    each("forward", forward);
    each("backward", backward);
    each("communication", communication);
    each("update", update);
    each("other", other);
    each("step", step);
    each("communication_hidden", communication_hidden);
  }
};

struct StragglerFacts {
  int rank = 0;
  std::string host, phase;
  std::optional<double> excess_seconds_per_step, share_of_step;

  template <typename Each>
  void fields(Each& each) {
    each("rank", rank, kRequired);
    each("host", host);
    each("phase", phase);
    each("excess_seconds_per_step", excess_seconds_per_step, kPositive);
    each("share_of_step", share_of_step, kPositive);
  }
};

struct CheckpointFacts {
  std::int64_t written = 0, failed = 0, bytes = 0;
  double blocked_seconds = 0, background_seconds = 0;
  std::optional<double> step_slowdown;
  std::int64_t resumed_after_steps = 0;

  template <typename Each>
  void fields(Each& each) {
    each("written", written);
    each("failed", failed);
    each("bytes", bytes);
    each("blocked_seconds", blocked_seconds);
    each("background_seconds", background_seconds);
    each("step_slowdown", step_slowdown);
    each("resumed_after_steps", resumed_after_steps);
  }
};

struct TraceFacts {
  std::int64_t spans = 0, dropped = 0;
  double communication_seconds = 0, hidden_seconds = 0, overlap = 0;
  double clock_uncertainty_seconds = 0, overhead_seconds = 0;

  template <typename Each>
  void fields(Each& each) {
    each("spans", spans);
    each("dropped", dropped);
    each("communication_seconds", communication_seconds);
    each("hidden_seconds", hidden_seconds);
    each("overlap", overlap);
    each("clock_uncertainty_seconds", clock_uncertainty_seconds);
    each("overhead_seconds", overhead_seconds);
  }
};

}  // namespace paceline

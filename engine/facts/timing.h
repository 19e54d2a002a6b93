// Duration, speed, and time by phase of a run.
#pragma once

#include "engine/facts/fact.h"

namespace paceline {

// Of one rank, without the warm-up.
struct StepQuantiles {
  PACELINE_FACT(fact::Real, p05, "5 % of the steps were shorter");
  PACELINE_FACT(fact::Real, p50, "the median");
  PACELINE_FACT(fact::Real, p95, "95 % of the steps were shorter");
  PACELINE_FACT(fact::Real, p99, "99 % of the steps were shorter");
  PACELINE_FACT(fact::Real, max, "the longest step");
  PACELINE_END_FACTS
};

struct Timing {
  PACELINE_FACT(fact::Real, fit_seconds,
                "compile_seconds and epoch_seconds, from barrier to barrier, maximum over ranks; "
                "without evaluation, checkpoints and event files",
                kPositive);
  PACELINE_FACT(fact::Real, first_epoch_seconds, "the first of epoch_seconds");
  PACELINE_FACT(std::vector<double>, epoch_seconds, "one per epoch, maximum over ranks");
  PACELINE_FACT(fact::Real, evaluation_seconds, "all evaluations");
  PACELINE_FACT(fact::Real, checkpoint_seconds, "training waited for checkpoints");
  PACELINE_FACT(fact::Real, events_seconds, "passing data to event files");
  PACELINE_FACT(fact::Real, consistency_seconds, "comparing replicas");
  PACELINE_FACT(fact::Real, setup_seconds, "before the first epoch");
  PACELINE_FACT(fact::Real, compile_seconds,
                "making the program, including the choice of algorithms; maximum over ranks");
  PACELINE_FACT(fact::Count, warmup_steps_excluded, "that step_seconds leave out");
  PACELINE_FACT(fact::OfRanks<StepQuantiles>, step_seconds, "one per rank");
  PACELINE_END_FACTS
};

struct Throughput {
  PACELINE_FACT(fact::Real, samples_per_second, "of all replicas, after the warm-up", kPositive);
  PACELINE_FACT(fact::Count, warmup_steps_excluded,
                "that the rate leaves out: 10, or none of a run of at most 40 steps; records "
                "without it give samples over fit_seconds");
  PACELINE_FACT(fact::Real, samples, "of all replicas; a published mean need not be whole");
  PACELINE_FACT(
      fact::Text, unit,
      "what samples and the rate count, as \"tokens\"; not said: samples; with better, the "
      "rate's own unit, as \"ns/day\"");
  PACELINE_FACT(fact::Text, better, "of a unit of its own: \"more\" or \"less\"");
  PACELINE_FACT(fact::Real, steps, "of the whole run");
  PACELINE_END_FACTS
};

// Of one rank, in the whole fit.
struct PhaseSeconds {
  PACELINE_FACT(double, input, "waiting for a batch");
  PACELINE_FACT(double, forward, "computing outputs and the loss");
  PACELINE_FACT(double, backward, "computing gradients");
  PACELINE_FACT(double, communication, "waiting for all-reduces");
  PACELINE_FACT(double, update, "the optimizer");
  PACELINE_FACT(double, other, "what is left of the step");
  PACELINE_FACT(double, step, "the sum of these phases");
  PACELINE_FACT(double, communication_hidden, "all-reduces while the rank computed");
  PACELINE_END_FACTS
};

// The rank that delayed the others.
struct StragglerFacts {
  PACELINE_FACT(int, rank, "", kRequired);
  PACELINE_FACT(fact::Text, host, "");
  PACELINE_FACT(fact::Text, phase, "the largest part of the excess");
  PACELINE_FACT(fact::Real, excess_seconds_per_step,
                "its work in a step beyond the median of the others", kPositive);
  PACELINE_FACT(fact::Real, share_of_step, "the excess over its step", kPositive);
  PACELINE_END_FACTS
};

// The cost of saving the run's state, on rank 0.
struct CheckpointFacts {
  PACELINE_FACT(std::int64_t, written, "checkpoints");
  PACELINE_FACT(std::int64_t, failed, "checkpoints that could not be written");
  PACELINE_FACT(std::int64_t, bytes, "of one");
  PACELINE_FACT(double, blocked_seconds, "training waited; not in fit_seconds");
  PACELINE_FACT(double, background_seconds, "written while training went on");
  PACELINE_FACT(fact::Real, step_slowdown,
                "mean step during a write over the mean of the others; empty: too few of either");
  PACELINE_FACT(std::int64_t, resumed_after_steps, "steps of earlier calls");
  PACELINE_END_FACTS
};

// Of `train --trace`.
struct TraceFacts {
  PACELINE_FACT(std::int64_t, spans, "in the file");
  PACELINE_FACT(std::int64_t, dropped, "the oldest, which had no room");
  PACELINE_FACT(double, communication_seconds, "summed over ranks");
  PACELINE_FACT(double, hidden_seconds, "of these, while the rank computed");
  PACELINE_FACT(double, overlap, "hidden_seconds over communication_seconds");
  PACELINE_FACT(double, clock_uncertainty_seconds, "of the worst rank");
  PACELINE_FACT(double, overhead_seconds, "of recording, on rank 0");
  PACELINE_END_FACTS
};

// Of traces that PyTorch's profiler recorded, a file a rank. A device is the GPU, or where there is
// none the CPUs. Seconds are summed over ranks, of the whole traces.
struct ProfileFacts {
  PACELINE_FACT(std::int64_t, steps, "of a rank, that the traces have");
  PACELINE_FACT(int, ranks, "that have a trace");
  PACELINE_FACT(std::int64_t, spans, "events that count");
  PACELINE_FACT(std::int64_t, left_out, "events without a usable time");
  PACELINE_FACT(double, device_seconds, "from the first to the last event of the device");
  PACELINE_FACT(double, compute_seconds, "of these, computing");
  PACELINE_FACT(double, idle_seconds, "of these, without any work");
  PACELINE_FACT(double, communication_seconds, "of these, communication, hidden or not");
  PACELINE_FACT(double, hidden_seconds, "of the communication, while the device computed");
  PACELINE_FACT(fact::Real, overlap, "hidden_seconds over communication_seconds", kShare);
  PACELINE_FACT(fact::Count, communication_bytes,
                "that the first rank gives to collectives in a step");
  PACELINE_END_FACTS
};

}  // namespace paceline

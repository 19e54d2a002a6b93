// What was trained, and how well.
#pragma once

#include "engine/facts/fact.h"

namespace paceline {

// Bytes of one replica.
struct MemoryFacts {
  PACELINE_FACT(fact::Count, activations, "including their gradients");
  PACELINE_FACT(fact::Count, parameters_gradients_state, "with the optimizer's moments");
  PACELINE_FACT(fact::Count, statistics, "of normalization");
  PACELINE_FACT(fact::Count, scratch, "of the device's libraries");
  PACELINE_FACT(fact::Count, total, "");
  PACELINE_END_FACTS
};

struct ReadyGradientsFacts {
  PACELINE_FACT(std::int64_t, bytes, "of all gradients that are final by then", kRequiredPositive);
  PACELINE_FACT(fact::Real, backward_seconds, "from the start of a step's backward; not on GPUs");
  PACELINE_END_FACTS
};

struct PlanFacts {
  PACELINE_FACT(fact::Count, parameter_count, "");
  PACELINE_FACT(
      fact::Real, flops_per_sample,
      "of forward and backward, without the update and the gradient of the first layer's input");
  PACELINE_FACT(fact::Count, tokens_per_sample, "of a network of tokens: its context");
  PACELINE_FACT(std::vector<std::int64_t>, bucket_bytes, "one per all-reduce of a step");
  PACELINE_FACT(std::vector<ReadyGradientsFacts>, gradients,
                "of rank 0, in the order in which they become ready");
  PACELINE_FACT(MemoryFacts, memory_bytes, "of one replica");
  PACELINE_FACT(fact::Flag, gradients_in_backend_memory, "the backend sums them in place");
  PACELINE_FACT(fact::Flag, gradients_staged,
                "a GPU's are copied to the host and back to be summed");
  PACELINE_FACT(fact::Flag, overlapped, "all-reduces run beside backward");
  PACELINE_FACT(fact::Real, global_batch, "samples of a step, of all replicas");
  PACELINE_FACT(fact::Real, learning_rate, "after the warm-up");
  PACELINE_END_FACTS
};

// The machine's speed, measured beside the run with all replicas at once.
struct ProbeFacts {
  PACELINE_FACT(
      fact::Real, flops_per_second,
      "of one replica: fused multiply-adds, counted as two, of bf16 pairs in a run in bf16 "
      "on a CPU that has such an instruction (but not of AMX's tiles), else of the real type");
  PACELINE_FACT(fact::Real, bytes_per_second, "of one replica: copied, counted once");
  PACELINE_END_FACTS
};

// Means over samples. Training's are taken during the epoch.
struct EpochFacts {
  PACELINE_FACT(fact::Real, train_loss, "null: not finite", kLoss);
  PACELINE_FACT(fact::Real, train_accuracy, "");
  PACELINE_FACT(fact::Real, test_loss, "null: not finite", kLoss);
  PACELINE_FACT(fact::Real, test_accuracy, "");
  PACELINE_FACT(fact::Real, train_top5, "of more than five classes");
  PACELINE_FACT(fact::Real, test_top5, "of more than five classes");
  PACELINE_FACT(fact::Count, epoch, "from 1; only if some epochs are omitted");
  PACELINE_END_FACTS
};

// Of a run that ends when an evaluation is good enough.
struct GoalFacts {
  PACELINE_FACT(fact::Text, goal, "");
  PACELINE_FACT(fact::Flag, reached, "");
  PACELINE_FACT(fact::Real, epochs, "", kPositive);
  PACELINE_FACT(fact::Real, steps, "including those before a checkpoint", kPositive);
  PACELINE_FACT(fact::Real, fit_seconds, "of runs in one piece", kPositive);
  PACELINE_FACT(fact::Real, seconds_with_evaluation, "of runs in one piece", kPositive);
  PACELINE_END_FACTS
};

struct QualityFacts {
  PACELINE_FACT(std::vector<EpochFacts>, epochs, "at most 96 rows");
  PACELINE_FACT(fact::Text, parameter_checksum, "of the canonical fp32 values");
  PACELINE_FACT(fact::Real, test_accuracy, "of the last epoch", kShare);
  PACELINE_FACT(fact::Real, test_top5, "of the last epoch", kShare);
  PACELINE_FACT(std::optional<GoalFacts>, until, "if it had a goal");
  PACELINE_END_FACTS
};

}  // namespace paceline

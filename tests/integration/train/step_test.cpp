// What a step may not do: allocate, fault pages in, lose time between its phases.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <numeric>

#include "tests/integration/train/training.h"
#include "tests/support/allocations.h"

namespace paceline {
namespace {

using TrainingRun = training::Run;

constexpr std::size_t kSteps = 40;

TrainingRun make_run(const char* workload, const char* device, int replicas) {
  TrainingRun run;
  run.workload = workload;
  run.device = device;
  run.config.replicas = replicas;
  run.config.batch_per_replica = 16;
  run.config.step_limit = kSteps;
  run.config.evaluate = Evaluate::none;
  run.config.log_every = 1;  // the report is called in every step
  return run;
}

// Counts taken at the end of each step, on rank 0's thread.
struct Counts {
  std::vector<long> allocations = std::vector<long>(kSteps + 1);
  std::vector<long> faults = std::vector<long>(kSteps + 1);
  void take(std::size_t step) {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    allocations[step] = paceline::allocations;
    faults[step] = usage.ru_minflt;
  }
};

Counts parse_counts(TrainingRun run, const DatasetPair& data) {
  Counts counts;
  run.report = [&counts](const Progress& progress) { counts.take(progress.step); };
  train(run, data);
  return counts;
}

class Step : public ::testing::TestWithParam<const char*> {
 protected:
  static const DatasetPair& data() {
    static const DatasetPair pair = training::mnist(2000, 100);
    return pair;
  }
};

// On cpu oneDNN allocates small objects of its own whenever a primitive is run.
TEST_P(Step, AllocatesNothingAfterTheFirst) {
  for (const int replicas : {1, 2}) {
    const Counts counts = parse_counts(make_run(GetParam(), "reference", replicas), data());
    // Other ranks may still be in their first step when rank 0 ends its own.
    EXPECT_EQ(counts.allocations[kSteps - 1] - counts.allocations[2], 0) << replicas << " replicas";
  }
}

TEST_P(Step, OfARecipeAllocatesNothingEither) {
  TrainingRun run = make_run(GetParam(), "reference", 1);
  run.config.schedule = {.decay = Decay::cosine, .warmup_epochs = 0.5};
  run.config.weight_decay = 0.01;
  run.config.clip_norm = 1;
  run.config.accumulate = 2;
  run.config.batch_per_replica = 8;
  const Counts counts = parse_counts(run, data());
  EXPECT_EQ(counts.allocations[kSteps - 1] - counts.allocations[2], 0);
}

TEST_P(Step, FaultsNoPageAfterTheFirst) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "memory that was freed is not used again";  // as the sanitizer wants it
#endif
  const Counts counts = parse_counts(make_run(GetParam(), "cpu", 1), data());
  // Memory that is taken anew faults in every step; a busy machine's kernel moves a page now and
  // then.
  std::size_t steps_with_faults = 0;
  for (std::size_t step = 2; step < kSteps; ++step) {
    if (counts.faults[step] > counts.faults[step - 1]) ++steps_with_faults;
  }
  EXPECT_LE(steps_with_faults, kSteps / 4);
}

TEST_P(Step, PhasesSumToIt) {
  TrainingRun run = make_run(GetParam(), "cpu", 2);
  run.comm_threads = 1;
  const auto result = train(run, data());
  ASSERT_EQ(result.outcome.ranks.size(), 2U);
  for (const RankTimes& rank : result.outcome.ranks) {
    ASSERT_EQ(rank.steps.size(), kSteps);
    double step_seconds = 0;
    for (const StepTimes& step : rank.steps) {
      const double sum = std::accumulate(step.seconds.begin(), step.seconds.end(), 0.0);
      EXPECT_NEAR(sum, step.total, 0.02 * step.total);
      for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
        EXPECT_GT(step.seconds[static_cast<std::size_t>(phase)], 0);
      }
      step_seconds += step.total;
    }
    EXPECT_LE(step_seconds, 1.01 * *result.outcome.timing.fit_seconds);
  }
  for (const RankFacts& rank : result.outcome.each_rank) {
    EXPECT_GT(rank.phases.value().communication + rank.phases->communication_hidden, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, Step, ::testing::Values("mnist-mlp", "mnist-cnn"),
                         [](const auto& info) { return std::string(info.param).substr(6); });

}  // namespace
}  // namespace paceline

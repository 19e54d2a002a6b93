// --check-every, and the comparison of plans: on replicas that are made to differ.
#include <gtest/gtest.h>

#include "tests/integration/train/training.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

using TrainingRun = training::Run;

const DatasetPair& small_mnist() {
  static const DatasetPair pair = training::mnist(2000, 100);
  return pair;
}

TrainingRun checked_run(int replicas, std::size_t check_every) {
  TrainingRun run;
  run.config.replicas = replicas;
  run.config.batch_per_replica = 16;
  run.config.step_limit = 20;
  run.config.evaluate = Evaluate::none;
  run.config.log_every = 1;
  run.config.check_every = check_every;
  return run;
}

// One value a little, after `step` steps.
auto change_at(std::size_t step, int of_rank) {
  return [step, of_rank](int rank, Program& program, const Progress& progress) {
    if (rank != of_rank || progress.step != step) return;
    std::vector<double> values = program.read_parameter(1);
    values.back() += 1e-4;
    program.write_parameter(1, values);
  };
}

void expect_refused(const TrainingRun& run, const std::vector<std::string>& parts) {
  expect_error(ErrorKind::mismatch, parts, [&] { training::train(run, small_mnist()); });
}

// A Horovod script without its distributed optimizer: each rank trains on its part by itself.
TEST(CheckEvery, FindsRanksThatDoNotReduce) {
  TrainingRun run = checked_run(2, 5);
  run.backend = "null";
  expect_refused(run, {"different parameters after step 5"});
  run.config.check_every = 0;  // without the check it would go unseen until the end
  expect_refused(run, {"different parameters after step 20"});
}

TEST(CheckEvery, NamesStepRankAndParameter) {
  TrainingRun run = checked_run(3, 5);
  run.meddle = change_at(7, 1);
  expect_refused(run, {"different parameters after step 10 (they were equal after step 5)",
                       "rank 1 differs from ranks 0, 2", "first in "});
}

TEST(CheckEvery, EveryStepNamesTheVeryStep) {
  TrainingRun run = checked_run(2, 1);
  run.meddle = change_at(7, 1);
  expect_refused(run, {"after step 7 (they were equal after step 6)", "ranks 0 and 1 differ"});
}

TEST(CheckEvery, WithoutItTheEndStillCompares) {
  TrainingRun run = checked_run(3, 0);
  run.meddle = change_at(20, 2);
  expect_refused(run, {"after step 20: rank 2 differs from ranks 0-1"});
}

TEST(CheckEvery, ChangesNoBitAndIsTimedApart) {
  const auto without = training::train(checked_run(2, 0), small_mnist());
  const auto with = training::train(checked_run(2, 1), small_mnist());
  EXPECT_EQ(with.parameters, without.parameters);
  EXPECT_GT(with.outcome.timing.consistency_seconds, 0);
  EXPECT_GT(with.outcome.timing.fit_seconds, 0);
}

TEST(Plans, ThatDifferAreRefusedBeforeTheFirstStep) {
  TrainingRun run = checked_run(2, 0);
  run.config_of_rank = [&run](int rank) {
    TrainConfig config = run.config;
    if (rank == 1) config.batch_per_replica = 8;
    return config;
  };
  expect_refused(run, {"samples of a step: rank 0 16, rank 1 8"});
}

}  // namespace
}  // namespace paceline

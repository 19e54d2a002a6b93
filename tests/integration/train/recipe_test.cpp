// Schedules, decay, clipping, smoothing and accumulation in whole runs: the same in every world
// size, and after a run went on.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/train/checkpoint/keeper.h"
#include "tests/integration/train/training.h"
#include "tests/support/scratch.h"

namespace paceline::training {
namespace {

using TrainingRun = Run;

Network network() {
  Network n("small", {28, 28, 1}, 10);
  n.conv(6, 3, 2, 1).relu().flatten().dense(16).relu().dropout(0.3).dense(10);
  return n;
}

const DatasetPair& data() {
  static const DatasetPair pair = mnist(200, 40);
  return pair;
}

class Recipe : public ::testing::Test {
 protected:
  TrainingRun run_of(int replicas, int batch, const std::string& device = "reference") {
    TrainingRun run;
    run.network = &network_;
    run.device = device;
    run.config.replicas = replicas;
    run.config.batch_per_replica = batch;
    run.config.epochs = 4;
    run.config.step_limit = 20;
    run.config.evaluate = Evaluate::none;
    return run;
  }

  static void expect_near(const Result& a, const Result& b, double bound) {
    for (const auto& [name, values] : b.parameters[0]) {
      const std::vector<double>& others = a.parameters[0].at(name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(others[i], values[i], bound) << name;
      }
    }
  }

  // 20 steps in one go, and 9 and then 11: within an epoch.
  void expect_exact_resume(TrainingRun run) {
    const Result whole = train(run, data());
    CheckpointSetup saving, going_on;
    saving.schedule = checkpoint_schedule_of("9 steps", "");
    saving.run = scratch_.path() / "run";
    saving.workload = going_on.workload = "small";
    going_on.resume = saving.run / "checkpoints" / "small-0001-step-00000009";
    run.checkpoints = &saving;
    run.config.step_limit = 9;
    train(run, data());
    run.checkpoints = &going_on;
    run.config.step_limit = 20;
    EXPECT_EQ(train(run, data()).parameters, whole.parameters);
    std::filesystem::remove_all(saving.run);
  }

  Scratch scratch_;
  Network network_ = network();
};

ScheduleSpec warm_cosine() {
  return {.decay = Decay::cosine, .warmup_epochs = 1.3, .end_rate = 0.0001};
}

TEST_F(Recipe, SchedulesDoNotDependOnTheWorld) {
  TrainingRun one = run_of(1, 32), four = run_of(4, 8);
  one.config.schedule = four.config.schedule = warm_cosine();
  const Result a = train(one, data()), b = train(four, data());
  expect_near(b, a, 1e-10);
  one.config.schedule = {};
  EXPECT_NE(train(one, data()).parameters, a.parameters);
}

TEST_F(Recipe, SchedulesGoOnExactly) {
  for (const Decay decay : {Decay::cosine, Decay::step, Decay::polynomial}) {
    TrainingRun run = run_of(2, 16, "cpu");
    run.config.schedule = warm_cosine();
    run.config.schedule.decay = decay;
    run.config.schedule.decay_epochs = {1.5, 2};
    run.config.optimizer = Optimizer::momentum;
    expect_exact_resume(run);
  }
}

// Statistics of batch_norm aside, which this network has none of.
TEST_F(Recipe, AccumulatedBatchesAreOneLargeOne) {
  for (const double clip_norm : {0.0, 0.5}) {
    TrainingRun one = run_of(1, 48);
    one.config.clip_norm = clip_norm;
    one.config.weight_decay = 0.01;
    one.config.bucket_mb = one.config.last_bucket_mb = 0.002;
    const Result whole = train(one, data());
    EXPECT_EQ(whole.outcome.steps, 20U);
    EXPECT_GT(whole.outcome.bucket_bytes.size(), 1U);
    for (const auto& [replicas, batch, parts] :
         {std::tuple{1, 12, 4}, {2, 8, 3}, {3, 8, 2}, {2, 24, 1}}) {
      SCOPED_TRACE(std::to_string(replicas) + " x " + std::to_string(batch) + " x " +
                   std::to_string(parts));
      TrainingRun other = run_of(replicas, batch);
      other.config = one.config;
      other.config.replicas = replicas;
      other.config.batch_per_replica = batch;
      other.config.accumulate = parts;
      const Result result = train(other, data());
      EXPECT_EQ(result.outcome.steps, 20U);
      EXPECT_EQ(result.outcome.global_batch, 48U);
      EXPECT_EQ(result.outcome.samples, whole.outcome.samples);
      EXPECT_NEAR(result.outcome.epochs[0].train_loss, whole.outcome.epochs[0].train_loss, 1e-10);
      expect_near(result, whole, 1e-10);
    }
  }
}

TEST_F(Recipe, NoBitDependsOnThreadsBucketsOrOverlap) {
  TrainingRun run = run_of(2, 8, "cpu");
  run.config.accumulate = 2;
  run.config.clip_norm = 0.3;
  run.config.weight_decay = 0.1;
  const Result plain = train(run, data());
  EXPECT_EQ(plain.parameters[0], plain.parameters[1]);
  run.comm_threads = run.input_threads = 1;
  run.config.bucket_mb = run.config.last_bucket_mb = 0.002;
  EXPECT_EQ(train(run, data()).parameters, plain.parameters);
  run.config.accumulate = 1;
  EXPECT_NE(train(run, data()).parameters, plain.parameters);
}

TEST_F(Recipe, DecayClippingAndAccumulationGoOnExactly) {
  TrainingRun run = run_of(2, 8, "cpu");
  run.config.accumulate = 2;
  run.config.clip_norm = 0.5;
  run.config.weight_decay = 0.1;
  run.config.schedule = warm_cosine();
  expect_exact_resume(run);
}

// The first step of plain gradient descent, whose gradient is known from an unclipped one.
TEST_F(Recipe, ClippingScalesTheReducedGradient) {
  TrainingRun run = run_of(2, 16);
  run.config.optimizer = Optimizer::sgd;
  run.config.learning_rate = 1;
  run.config.step_limit = 1;
  const Result free = train(run, data());
  run.config.update = false;
  const Result start = train(run, data());
  run.config.update = true;
  double squares = 0;
  for (const auto& [name, values] : start.parameters[0]) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double g = values[i] - free.parameters[0].at(name)[i];
      squares += g * g;
    }
  }
  run.config.clip_norm = std::sqrt(squares) / 10;
  const Result clipped = train(run, data());
  for (const auto& [name, values] : start.parameters[0]) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double g = values[i] - free.parameters[0].at(name)[i];
      ASSERT_NEAR(clipped.parameters[0].at(name)[i], values[i] - g / 10, 1e-12) << name;
    }
  }
}

TEST_F(Recipe, OnlyKernelsDecay) {
  TrainingRun run = run_of(1, 32);
  run.config.optimizer = Optimizer::sgd;
  run.config.learning_rate = 0.5;
  run.config.step_limit = 1;
  const Result plain = train(run, data());
  run.config.update = false;
  const Result start = train(run, data());
  run.config.update = true;
  run.config.weight_decay = 0.2;
  for (const bool decoupled : {true, false}) {
    run.config.decoupled_decay = decoupled;
    const Result decayed = train(run, data());
    for (const auto& [name, values] : plain.parameters[0]) {
      const double share = name.ends_with("/kernel") ? 0.5 * 0.2 : 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double was = start.parameters[0].at(name)[i];
        ASSERT_NEAR(decayed.parameters[0].at(name)[i], values[i] - share * was, 1e-14) << name;
      }
    }
  }
}

// A rate of zero moves nothing: the first step of a warm-up from it, and the end of a polynomial.
TEST_F(Recipe, TheRateOfAStepIsThatOfItsBegin) {
  TrainingRun run = run_of(1, 32);
  run.config.optimizer = Optimizer::sgd;
  run.config.schedule.warmup_epochs = 2;
  run.config.step_limit = 1;
  const Result still = train(run, data());
  run.config.update = false;
  EXPECT_EQ(train(run, data()).parameters, still.parameters);
  run.config.update = true;
  run.config.step_limit = 2;
  EXPECT_NE(train(run, data()).parameters, still.parameters);
}

}  // namespace
}  // namespace paceline::training

// Schedules, decay, clipping, smoothing and accumulation in whole runs: the same in every world
// size, and after a run went on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/train/checkpoint/manager.h"
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

const DatasetPair& digits() {
  static const DatasetPair pair = mnist(200, 40);
  return pair;
}

class Recipe : public ::testing::Test {
 protected:
  TrainingRun make_run(int replicas, int batch, const std::string& device = "reference") {
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
    const Result whole = train(run, digits());
    CheckpointSetup saving, going_on;
    saving.schedule = parse_checkpoint_schedule("9 steps", "");
    saving.run = scratch_ / "run";
    saving.workload = going_on.workload = "small";
    going_on.resume = saving.run / "checkpoints" / "small-0001-step-00000009";
    run.checkpoints = &saving;
    run.config.step_limit = 9;
    train(run, digits());
    run.checkpoints = &going_on;
    run.config.step_limit = 20;
    EXPECT_EQ(train(run, digits()).parameters, whole.parameters);
    std::filesystem::remove_all(saving.run);
  }

  Scratch scratch_;
  Network network_ = network();
};

ScheduleSpec warm_cosine() {
  return {.decay = Decay::cosine, .warmup_epochs = 1.3, .end_rate = 0.0001};
}

TEST_F(Recipe, SchedulesDoNotDependOnTheWorld) {
  TrainingRun one = make_run(1, 32), four = make_run(4, 8);
  one.config.schedule = four.config.schedule = warm_cosine();
  const Result a = train(one, digits()), b = train(four, digits());
  expect_near(b, a, 1e-10);
  one.config.schedule = {};
  EXPECT_NE(train(one, digits()).parameters, a.parameters);
}

TEST_F(Recipe, Beta2IsThatOfEveryReplica) {
  TrainingRun one = make_run(1, 32), four = make_run(4, 8);
  const Result before = train(one, digits());
  one.config.beta2 = four.config.beta2 = 0.9;
  const Result a = train(one, digits());
  expect_near(train(four, digits()), a, 1e-10);
  EXPECT_NE(a.parameters, before.parameters);
}

TEST_F(Recipe, SchedulesGoOnExactly) {
  for (const Decay decay : {Decay::cosine, Decay::step}) {
    TrainingRun run = make_run(2, 16, "cpu");
    run.config.schedule = warm_cosine();
    run.config.schedule.decay = decay;
    run.config.schedule.decay_epochs = {1.5, 2};
    run.config.optimizer = Optimizer::momentum;
    expect_exact_resume(run);
  }
}

// No epoch improves by so much: the rate falls after the second and each that follows.
TEST_F(Recipe, APlateauLowersTheRateOfAllRanks) {
  for (const int replicas : {1, 3}) {
    TrainingRun run = make_run(replicas, 24 / replicas, "cpu");
    std::vector<std::string> reported;
    run.reported = &reported;
    run.config.step_limit = 0;
    run.config.evaluate = Evaluate::epoch;
    run.config.schedule = {
        .decay = Decay::plateau, .decay_factor = 0.5, .patience = 1, .min_delta = 1000};
    const Result whole = train(run, digits());
    EXPECT_NE(std::find(reported.begin(), reported.end(),
                        "test_loss did not improve: the learning rate falls to 0.00025 after "
                        "epoch 3"),
              reported.end());
    CheckpointSetup saving, going_on;
    saving.schedule = parse_checkpoint_schedule("1 epoch", "");
    saving.run = scratch_ / std::to_string(replicas);
    saving.workload = going_on.workload = "small";
    going_on.resume = saving.run / "checkpoints" / "small-0003";
    run.checkpoints = &saving;
    run.config.epochs = 3;
    train(run, digits());
    run.checkpoints = &going_on;
    run.config.epochs = 4;
    EXPECT_EQ(train(run, digits()).parameters, whole.parameters);
    run.checkpoints = nullptr;
    run.config.schedule = {.decay = Decay::step, .decay_epochs = {2, 3}, .decay_factor = 0.5};
    EXPECT_EQ(train(run, digits()).parameters, whole.parameters);
    run.config.schedule = {};
    EXPECT_NE(train(run, digits()).parameters, whole.parameters);
  }
}

// Statistics of batch_norm aside, which this network has none of.
TEST_F(Recipe, AccumulatedBatchesAreOneLargeOne) {
  for (const double clip_norm : {0.0, 0.5}) {
    TrainingRun one = make_run(1, 48);
    one.config.clip_norm = clip_norm;
    one.config.weight_decay = 0.01;
    one.config.bucket_mb = one.config.last_bucket_mb = 0.002;
    const Result whole = train(one, digits());
    EXPECT_EQ(whole.outcome.steps, 20U);
    EXPECT_EQ(whole.outcome.plan.bucket_bytes.size(), 1U) << "nothing is summed";
    for (const auto& [replicas, batch, parts] :
         {std::tuple{1, 12, 4}, {2, 8, 3}, {3, 8, 2}, {2, 24, 1}}) {
      SCOPED_TRACE(std::to_string(replicas) + " x " + std::to_string(batch) + " x " +
                   std::to_string(parts));
      TrainingRun other = make_run(replicas, batch);
      other.config = one.config;
      other.config.replicas = replicas;
      other.config.batch_per_replica = batch;
      other.config.accumulate = parts;
      const Result result = train(other, digits());
      EXPECT_EQ(result.outcome.steps, 20U);
      EXPECT_EQ(result.outcome.plan.global_batch, 48U);
      EXPECT_EQ(result.outcome.samples, whole.outcome.samples);
      if (replicas > 1) {
        EXPECT_GT(result.outcome.plan.bucket_bytes.size(), 1U);
      }
      EXPECT_NEAR(result.outcome.quality.epochs[0].train_loss.value(),
                  whole.outcome.quality.epochs[0].train_loss.value(), 1e-10);
      expect_near(result, whole, 1e-10);
    }
  }
}

TEST_F(Recipe, NoBitDependsOnThreadsBucketsOrOverlap) {
  TrainingRun run = make_run(2, 8, "cpu");
  run.config.accumulate = 2;
  run.config.clip_norm = 0.3;
  run.config.weight_decay = 0.1;
  const Result plain = train(run, digits());
  EXPECT_EQ(plain.parameters[0], plain.parameters[1]);
  run.comm_threads = run.input_threads = 1;
  run.config.bucket_mb = run.config.last_bucket_mb = 0.002;
  EXPECT_EQ(train(run, digits()).parameters, plain.parameters);
  run.config.accumulate = 1;
  EXPECT_NE(train(run, digits()).parameters, plain.parameters);
}

TEST_F(Recipe, DecayClippingAndAccumulationGoOnExactly) {
  TrainingRun run = make_run(2, 8, "cpu");
  run.config.accumulate = 2;
  run.config.clip_norm = 0.5;
  run.config.weight_decay = 0.1;
  run.config.schedule = warm_cosine();
  expect_exact_resume(run);
}

// The first step of plain gradient descent, whose gradient is known from an unclipped one.
TEST_F(Recipe, ClippingScalesTheReducedGradient) {
  TrainingRun run = make_run(2, 16);
  run.config.optimizer = Optimizer::sgd;
  run.config.learning_rate = 1;
  run.config.step_limit = 1;
  const Result free = train(run, digits());
  run.config.update = false;
  const Result start = train(run, digits());
  run.config.update = true;
  double squares = 0;
  for (const auto& [name, values] : start.parameters[0]) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double g = values[i] - free.parameters[0].at(name)[i];
      squares += g * g;
    }
  }
  run.config.clip_norm = std::sqrt(squares) / 10;
  const Result clipped = train(run, digits());
  for (const auto& [name, values] : start.parameters[0]) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double g = values[i] - free.parameters[0].at(name)[i];
      ASSERT_NEAR(clipped.parameters[0].at(name)[i], values[i] - g / 10, 1e-12) << name;
    }
  }
}

TEST_F(Recipe, OnlyKernelsDecay) {
  TrainingRun run = make_run(1, 32);
  run.config.optimizer = Optimizer::sgd;
  run.config.learning_rate = 0.5;
  run.config.step_limit = 1;
  const Result plain = train(run, digits());
  run.config.update = false;
  const Result start = train(run, digits());
  run.config.update = true;
  run.config.weight_decay = 0.2;
  for (const bool decoupled : {true, false}) {
    run.config.decoupled_decay = decoupled;
    const Result decayed = train(run, digits());
    for (const auto& [name, values] : plain.parameters[0]) {
      const double share = name.ends_with("/kernel") ? 0.5 * 0.2 : 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double was = start.parameters[0].at(name)[i];
        ASSERT_NEAR(decayed.parameters[0].at(name)[i], values[i] - share * was, 1e-14) << name;
      }
    }
  }
}

TEST_F(Recipe, AGoalEndsTheTrainingOnAllRanks) {
  TrainingRun run = make_run(3, 8, "cpu");
  run.config.step_limit = 0;
  run.config.epochs = 12;
  run.config.evaluate = Evaluate::epoch;
  const Result whole = train(run, digits());
  ASSERT_EQ(whole.outcome.quality.epochs.size(), 12U);
  EXPECT_FALSE(whole.outcome.goal_reached);
  double best = 0;
  std::size_t first = 0;  // epoch, from 0, whose accuracy is above half of the way
  for (const EpochFacts& epoch : whole.outcome.quality.epochs)
    best = std::max(best, *epoch.test_accuracy);
  const double wanted = best / 2;
  while (whole.outcome.quality.epochs[first].test_accuracy.value() < wanted) ++first;
  run.config.until = Goal{Metric::test_accuracy, wanted};
  const Result ended = train(run, digits());
  EXPECT_TRUE(ended.outcome.goal_reached);
  EXPECT_EQ(ended.outcome.quality.epochs.size(), first + 1);
  EXPECT_EQ(ended.outcome.steps, whole.outcome.steps / 12 * (first + 1));
  EXPECT_EQ(ended.parameters[0], ended.parameters[2]);

  run.config.evaluate_every = 5;
  const Result rarely = train(run, digits());
  EXPECT_EQ(rarely.outcome.quality.epochs.size(), (first / 5 + 1) * 5);
  for (std::size_t i = 0; i < rarely.outcome.quality.epochs.size(); ++i) {
    EXPECT_EQ(rarely.outcome.quality.epochs[i].test_accuracy.has_value(), (i + 1) % 5 == 0) << i;
  }
  run.config.evaluate_every = 1;
  run.config.until = Goal{Metric::test_accuracy, 1};
  run.config.epochs = 2;
  EXPECT_FALSE(train(run, digits()).outcome.goal_reached);
}

// The last checkpoint of a run that reached its goal is its end, not a place to go on from.
TEST_F(Recipe, ARunThatReachedItsGoalIsDoneWhenResumed) {
  TrainingRun run = make_run(2, 16, "cpu");
  run.config.step_limit = 0;
  run.config.epochs = 3;
  run.config.evaluate = Evaluate::epoch;
  run.config.until = Goal{Metric::test_accuracy, 0.01};
  CheckpointSetup saving, going_on;
  saving.schedule = parse_checkpoint_schedule("2 epochs", "");
  saving.run = scratch_ / "run";
  saving.workload = going_on.workload = "small";
  run.checkpoints = &saving;
  EXPECT_EQ(train(run, digits()).outcome.quality.epochs.size(), 1U);
  going_on.resume = saving.run / "checkpoints" / "small-0001";
  run.checkpoints = &going_on;
  EXPECT_EQ(train(run, digits()).outcome.steps, 0U);
  run.config.until->value = 0.999;  // more is asked for
  EXPECT_EQ(train(run, digits()).outcome.quality.epochs.size(), 3U);
}

TEST_F(Recipe, TopFiveIsCountedOverAllRanks) {
  TrainingRun run = make_run(1, 24, "cpu");
  run.config.evaluate = Evaluate::epoch;
  const Result one = train(run, digits());
  for (const EpochFacts& epoch : one.outcome.quality.epochs) {
    EXPECT_GE(epoch.test_top5, epoch.test_accuracy);
    EXPECT_GE(epoch.train_top5, epoch.train_accuracy);
    EXPECT_LE(epoch.test_top5, 1);
  }
  run.config.update = false;
  const Result still = train(run, digits());
  run.config.replicas = 3;
  run.config.batch_per_replica = 8;
  const Result three = train(run, digits());
  EXPECT_EQ(three.outcome.quality.epochs[0].test_top5.value(),
            still.outcome.quality.epochs[0].test_top5.value());
  EXPECT_EQ(three.outcome.quality.epochs[0].train_top5.value(),
            still.outcome.quality.epochs[0].train_top5.value());
  EXPECT_NE(still.outcome.quality.epochs[0].test_top5.value(),
            one.outcome.quality.epochs.back().test_top5.value());
}

// A rate of zero moves nothing: the first step of a warm-up from it.
TEST_F(Recipe, TheRateOfAStepIsThatOfItsBegin) {
  TrainingRun run = make_run(1, 32);
  run.config.optimizer = Optimizer::sgd;
  run.config.schedule.warmup_epochs = 2;
  run.config.step_limit = 1;
  const Result still = train(run, digits());
  run.config.update = false;
  EXPECT_EQ(train(run, digits()).parameters, still.parameters);
  run.config.update = true;
  run.config.step_limit = 2;
  EXPECT_NE(train(run, digits()).parameters, still.parameters);
}

}  // namespace
}  // namespace paceline::training

// What must not change the result, and what must.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/integration/train/training.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

using training::Result;
using TrainingRun = training::Run;

const DatasetPair& data() {
  static const DatasetPair pair = training::mnist(6400, 500);
  return pair;
}

TrainingRun make_run(int replicas, int batch, std::size_t steps) {
  TrainingRun run;
  run.config.replicas = replicas;
  run.config.batch_per_replica = batch;
  run.config.step_limit = steps;
  run.config.epochs = 1;
  run.config.evaluate = Evaluate::none;
  return run;
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

// Dropout stays on: its bits follow a sample's place in the global order, not its rank.
TEST(WorldSize, TwoReplicasOfHalfTheBatchEqualOneInDouble) {
  TrainingRun one = make_run(1, 64, 100), two = make_run(2, 32, 100);
  one.device = two.device = "reference";
  const Result a = train(one, data()), b = train(two, data());
  ASSERT_EQ(a.outcome.steps, 100U);
  ASSERT_EQ(b.outcome.steps, 100U);
  for (const auto& [name, values] : a.parameters[0]) {
    EXPECT_LT(relative_difference(b.parameters[0].at(name), values), 1e-10) << name;
    EXPECT_EQ(b.parameters[0].at(name), b.parameters[1].at(name)) << name;
  }
  EXPECT_NEAR(b.outcome.quality.epochs[0].train_loss.value(),
              a.outcome.quality.epochs[0].train_loss.value(),
              1e-10 * a.outcome.quality.epochs[0].train_loss.value());
}

class Workloads : public ::testing::TestWithParam<const char*> {
 protected:
  TrainingRun cpu_run(std::size_t steps = 60) const {
    TrainingRun run = make_run(2, 32, steps);
    run.workload = GetParam();
    return run;
  }
};

TEST_P(Workloads, RanksEndWithTheSameBitsAndRunsRepeat) {
  const Result first = train(cpu_run(), data()), again = train(cpu_run(), data());
  EXPECT_EQ(first.parameters[0], first.parameters[1]);
  EXPECT_EQ(first.parameters, again.parameters);
  EXPECT_EQ(first.outcome.quality.parameter_checksum, again.outcome.quality.parameter_checksum);
  EXPECT_EQ(first.outcome.quality.epochs[0].train_loss.value(),
            again.outcome.quality.epochs[0].train_loss.value());
  TrainingRun other = cpu_run();
  other.config.seed = 2;
  EXPECT_NE(train(other, data()).outcome.quality.parameter_checksum,
            first.outcome.quality.parameter_checksum);
}

TEST_P(Workloads, OverlapBucketsAndInputThreadsChangeNoBit) {
  const Result plain = train(cpu_run(), data());
  EXPECT_EQ(plain.outcome.plan.overlapped, false);
  std::size_t buckets = 0;
  for (const double bucket_mb : {8.0, 0.05}) {
    for (const bool overlap : {false, true}) {
      TrainingRun run = cpu_run();
      run.comm_threads = 1;
      run.config.overlap = overlap;
      run.config.bucket_mb = run.config.last_bucket_mb = bucket_mb;
      const Result result = train(run, data());
      EXPECT_EQ(result.outcome.plan.overlapped, overlap);
      EXPECT_EQ(result.parameters, plain.parameters)
          << "overlap " << overlap << ", buckets of " << bucket_mb << " MB";
      buckets = result.outcome.plan.bucket_bytes.size();
    }
  }
  EXPECT_GT(buckets, 1U) << "small buckets were not tried";
  for (const int threads : {1, 2}) {
    TrainingRun run = cpu_run();
    run.input_threads = threads;
    EXPECT_EQ(train(run, data()).parameters, plain.parameters) << threads << " input threads";
  }
}

TEST_P(Workloads, NullReducesNothing) {
  TrainingRun run = cpu_run(10);
  const Result reduced = train(run, data());
  run.backend = "null";
  run.config.check_replicas = false;
  const Result apart = train(run, data());
  EXPECT_NE(apart.parameters[0], apart.parameters[1]);
  EXPECT_NE(apart.parameters[0], reduced.parameters[0]);
}

INSTANTIATE_TEST_SUITE_P(All, Workloads, ::testing::Values("mnist-mlp", "mnist-cnn"),
                         [](const auto& info) { return std::string(info.param).substr(6); });

TEST(Replicas, ThatDifferAtTheEndAreReported) {
  TrainingRun run = make_run(2, 32, 5);
  run.backend = "null";
  expect_error(ErrorKind::mismatch, {}, [&] { train(run, data()); });
}

TEST(Updates, CanBeSwitchedOff) {
  TrainingRun run = make_run(1, 64, 5);
  run.config.update = false;
  const Result still = train(run, data());
  run.config.step_limit = 1;
  EXPECT_EQ(still.parameters, train(run, data()).parameters);
  run.config.update = true;
  EXPECT_NE(still.parameters, train(run, data()).parameters);
}

TEST(Outcome, CountsAreThoseOfTheRun) {
  TrainingRun run = make_run(2, 32, 0);
  run.config.epochs = 2;
  run.config.evaluate = Evaluate::epoch;
  DatasetPair small = data();
  limit_samples(small.train, 1000);
  const Result keep = train(run, small);
  EXPECT_EQ(keep.outcome.steps, 32U);  // twice 15 whole batches of 64 and one of 40
  EXPECT_EQ(keep.outcome.samples, 2000U);
  ASSERT_EQ(keep.outcome.quality.epochs.size(), 2U);
  for (const EpochFacts& epoch : keep.outcome.quality.epochs) {
    EXPECT_GT(epoch.test_accuracy, 0.3);
    EXPECT_LE(epoch.test_accuracy, 1);
  }
  EXPECT_LT(keep.outcome.quality.epochs[1].train_loss.value(),
            keep.outcome.quality.epochs[0].train_loss.value());
  ASSERT_EQ(keep.outcome.ranks.size(), 2U);
  for (const RankTimes& rank : keep.outcome.ranks) EXPECT_EQ(rank.steps.size(), 32U);
  run.config.drop_last = true;
  const Result drop = train(run, small);
  EXPECT_EQ(drop.outcome.steps, 30U);
  EXPECT_EQ(drop.outcome.samples, 1920U);
  run.config.steps_per_epoch = 7;
  EXPECT_EQ(train(run, small).outcome.steps, 14U);
}

// Sums over real samples only, so that shares of unequal size give the same.
TEST(Evaluation, DoesNotDependOnTheNumberOfReplicas) {
  TrainingRun run = make_run(1, 60, 1);
  run.config.update = false;
  run.config.evaluate = Evaluate::end;
  const Result one = train(run, data());
  run.config.replicas = 3;
  run.config.batch_per_replica = 20;
  const Result three = train(run, data());
  EXPECT_EQ(one.outcome.quality.epochs[0].test_accuracy.value(),
            three.outcome.quality.epochs[0].test_accuracy.value());
  EXPECT_NEAR(one.outcome.quality.epochs[0].test_loss.value(),
              three.outcome.quality.epochs[0].test_loss.value(), 1e-6);
}

TEST(Samples, OfAnotherShapeThanTheNetworksAreRefused) {
  const DatasetPair small = synthetic_images(14, 14, 1, 10, 640, 64, 1);
  expect_error(ErrorKind::input, {"14 x 14 x 1"}, [&] { train(make_run(1, 64, 1), small); });
}

}  // namespace
}  // namespace paceline

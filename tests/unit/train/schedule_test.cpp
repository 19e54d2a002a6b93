// Rates against numbers worked out by hand, and what a schedule is not given.
#include "engine/train/schedule.h"

#include <gtest/gtest.h>

#include "engine/train/config.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TrainConfig make_config(RateRule rule) {
  TrainConfig config;
  config.replicas = 8;
  config.learning_rate = 0.1;
  config.rate_rule = rule;
  config.epochs = 90;
  return config;
}

// Horovod: lr / N at the first step, lr after the warm-up, a straight line between.
TEST(Schedule, WarmsUpAsHorovodDoes) {
  TrainConfig config = make_config(RateRule::linear);
  config.schedule.warmup_epochs = 5;
  const Schedule schedule = make_schedule(config, 100);
  for (const double epoch : {0.0, 0.5, 1.0, 2.5, 4.99}) {
    const double horovod = 0.8 * (1.0 / 8) * (epoch * (8 - 1) / 5 + 1);
    EXPECT_NEAR(schedule.rate(epoch), horovod, 1e-15) << epoch;
  }
  EXPECT_DOUBLE_EQ(schedule.rate(5), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(70), 0.8);
  config.replicas = 1;  // nothing to grow
  EXPECT_DOUBLE_EQ(make_schedule(config, 100).rate(0), 0.1);
}

TEST(Schedule, WarmsUpFromNothingWhereTheRateDoesNotGrow) {
  TrainConfig config = make_config(RateRule::none);
  config.schedule.warmup_epochs = 0.5;
  const Schedule schedule = make_schedule(config, 100);
  EXPECT_EQ(schedule.rate(0), 0);
  EXPECT_DOUBLE_EQ(schedule.rate(0.25), 0.05);
  EXPECT_DOUBLE_EQ(schedule.rate(0.5), 0.1);
}

TEST(Schedule, FallsInSteps) {
  TrainConfig config = make_config(RateRule::linear);
  config.schedule = {
      .decay = Decay::step, .warmup_epochs = 5, .decay_epochs = {30, 60, 80}, .decay_factor = 0.1};
  const Schedule schedule = make_schedule(config, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(29.99), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(30), 0.08);
  EXPECT_NEAR(schedule.rate(79), 0.008, 1e-15);
  EXPECT_NEAR(schedule.rate(89), 0.0008, 1e-15);
}

// PyTorch's CosineAnnealingLR(T_max=80, eta_min=0.08) at 0, 20, 40 and 80 of its epochs.
TEST(Schedule, FallsAsACosine) {
  TrainConfig config = make_config(RateRule::linear);
  config.schedule = {.decay = Decay::cosine, .warmup_epochs = 10, .end_rate = 0.01};
  const Schedule schedule = make_schedule(config, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(10), 0.8);
  EXPECT_NEAR(schedule.rate(30), 0.6945584412271571, 1e-14);
  EXPECT_NEAR(schedule.rate(50), 0.44, 1e-15);
  EXPECT_NEAR(schedule.rate(90), 0.08, 1e-15);
  EXPECT_NEAR(schedule.rate(91), 0.08, 1e-15);
}

TEST(Schedule, LastsAsLongAsTheRunEvenIfItsStepsEndBefore) {
  TrainConfig config = make_config(RateRule::none);
  config.schedule.decay = Decay::cosine;
  config.step_limit = 10;
  EXPECT_NEAR(make_schedule(config, 100).rate(45), 0.05, 1e-15);
  config.epochs = kManyEpochs;  // only steps were given: a tenth of an epoch
  EXPECT_NEAR(make_schedule(config, 100).rate(0.05), 0.05, 1e-15);
}

EpochFacts collect_quality(fact::Real test_loss, fact::Real test_accuracy = {}) {
  EpochFacts quality;
  quality.test_loss = test_loss;
  quality.test_accuracy = test_accuracy;
  return quality;
}

// Keras' ReduceLROnPlateau(factor=0.5, patience=2, min_delta=0.1, cooldown=2, min_lr=0.2), epoch by
// epoch. Its cooldown is counted down before it is looked at, so that the last of its epochs waits.
TEST(Schedule, FallsOnAPlateauAsKerasDoes) {
  TrainConfig config;
  config.learning_rate = 1;
  config.schedule = {.decay = Decay::plateau,
                     .decay_factor = 0.5,
                     .end_rate = 0.2,
                     .patience = 2,
                     .min_delta = 0.1,
                     .cooldown = 2};
  struct Epoch {
    double loss, rate;  // the rate after it
  };
  const std::vector<Epoch> epochs = {{1.00, 1},    // the best so far
                                     {0.95, 1},    // not better by 0.1: 1 epoch waited
                                     {0.90, 0.5},  // nor this: 2
                                     {0.95, 0.5},  // in the cooldown
                                     {0.95, 0.5},  // its last epoch: 1
                                     {0.80, 0.5},  // the best
                                     {0.75, 0.5},  // 1
                                     {0.72, 0.25}, {0.60, 0.25},  // the best, in the cooldown
                                     {0.60, 0.25},                // 1
                                     {0.60, 0.2},                 // 0.125 would be below the least
                                     {0.60, 0.2},  {0.60, 0.2},  {0.60, 0.2}, {0.60, 0.2}};
  Schedule schedule = make_schedule(config, 100);
  EXPECT_EQ(schedule.rate(0), 1);
  double before = 1;
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    EXPECT_FALSE(schedule.end_epoch(EpochFacts{})) << "not evaluated";
    EXPECT_EQ(schedule.end_epoch(collect_quality(epochs[i].loss)), epochs[i].rate < before) << i;
    EXPECT_EQ(schedule.rate(static_cast<double>(i) + 1), epochs[i].rate) << i;
    before = epochs[i].rate;
  }
}

TEST(Schedule, APlateauOfAnAccuracyIsBelowItsBest) {
  TrainConfig config = make_config(RateRule::linear);
  config.schedule = {.decay = Decay::plateau,
                     .warmup_epochs = 2,
                     .decay_factor = 0.1,
                     .metric = Metric::test_accuracy,
                     .patience = 1,
                     .min_delta = 0.05};
  Schedule schedule = make_schedule(config, 100);
  EXPECT_FALSE(schedule.end_epoch(collect_quality(1, 0.5)));
  EXPECT_FALSE(schedule.end_epoch(collect_quality(2, 0.56))) << "the loss is not looked at";
  EXPECT_DOUBLE_EQ(schedule.rate(2), 0.8);
  EXPECT_TRUE(schedule.end_epoch(collect_quality(1, 0.6)));
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.08);
  EXPECT_DOUBLE_EQ(schedule.rate(1), 0.1 * (1 + 0.5 * 7)) << "a warm-up is not changed";
}

TEST(Schedule, NamesAndEpochsAreChecked) {
  EXPECT_EQ(parse_decay("cosine"), Decay::cosine);
  expect_error(ErrorKind::usage, {"linear", "plateau"}, [] { parse_decay("linear"); });
  EXPECT_EQ(parse_decay_epochs("30,60,80.5"), (std::vector<double>{30, 60, 80.5}));
  for (const char* text : {"", "a", "30,", "30,30", "60,30", "0,1", "-1", "nan", "1e999"}) {
    expect_error(ErrorKind::usage, {"decay_epochs cannot be", "30,60,80"},
                 [&] { parse_decay_epochs(text); });
  }
}

}  // namespace
}  // namespace paceline

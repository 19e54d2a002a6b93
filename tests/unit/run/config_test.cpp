#include "run/config.h"

#include <gtest/gtest.h>

#include "run/training_run.h"

namespace paceline {
namespace {

RunConfig config(const std::vector<std::pair<std::string, std::string>>& given) {
  Point point;
  for (const auto& [name, text] : given) point.set(name, parsed_value(name, text, ""));
  return make_config(resolve_parameters(make_workload("mnist-mlp"), point));
}

TEST(RunConfig, HasWhatWasGiven) {
  const RunConfig c = config({{"optimizer", "momentum"},
                              {"momentum", "0.5"},
                              {"schedule", "step"},
                              {"decay_epochs", "1,2"},
                              {"weight_decay", "0.01"},
                              {"weight_decay_form", "l2"},
                              {"train_limit", "640"},
                              {"steps_per_epoch", "7"},
                              {"last_batch", "drop"},
                              {"gradient_accumulation_steps", "2"},
                              {"bucket_mb", "3"},
                              {"overlap", "false"},
                              {"cache_mb", "2"},
                              {"checkpoint_every", "17steps"},
                              {"tensorboard", "logs"},
                              {"log_every", "9"},
                              {"seed", "4"}});
  EXPECT_EQ(c.train.optimizer, Optimizer::momentum);
  EXPECT_EQ(c.train.momentum, 0.5);
  EXPECT_EQ(c.train.schedule.decay_epochs.size(), 2U);
  EXPECT_EQ(c.train.schedule.decay_factor, 0.1);
  EXPECT_FALSE(c.train.decoupled_decay);
  EXPECT_EQ(c.input.train_limit, 640U);
  EXPECT_EQ(c.train.steps_per_epoch, 7U);
  EXPECT_TRUE(c.train.drop_last);
  EXPECT_EQ(c.train.accumulate, 2);
  EXPECT_EQ(c.train.bucket_mb, 3);
  EXPECT_FALSE(c.train.overlap);
  EXPECT_EQ(c.input.cache_bytes, std::size_t{2} << 20);
  EXPECT_EQ(c.input.for_encoded_images, std::vector<std::string>{"cache_mb"});
  EXPECT_TRUE(c.checkpoints.is_on());
  EXPECT_EQ(c.checkpoints.keep, 5);
  EXPECT_EQ(c.events.folder, "logs");
  EXPECT_EQ(c.train.log_every, 9U);
  EXPECT_EQ(c.train.seed, 4U);
}

TEST(RunConfig, HasTheDefaultsOfTheTable) {
  const RunConfig c = config({});
  EXPECT_EQ(c.train.beta2, 0.999);
  EXPECT_EQ(c.train.accumulate, 1);
  EXPECT_EQ(c.train.evaluate_every, 1);
  EXPECT_EQ(c.train.clip_norm, 0);
  EXPECT_TRUE(c.train.decoupled_decay);
  EXPECT_EQ(c.train.bucket_mb, 8);
  EXPECT_EQ(c.input.cache, CacheKind::decoded);
  EXPECT_EQ(c.input.cache_bytes, std::nullopt);
  EXPECT_FALSE(c.checkpoints.is_on());
  EXPECT_TRUE(c.events.folder.empty());
  EXPECT_EQ(c.weights, "none");
  EXPECT_EQ(c.place.backend, "self");
}

TEST(RunConfig, TheLossHasItsConfiguration) {
  EXPECT_EQ(config({{"label_smoothing", "0.1"}}).network.loss.label_smoothing, 0.1);
  EXPECT_TRUE(config({{"double_softmax", "true"}}).network.loss.double_softmax);
  EXPECT_FALSE(config({}).network.loss.double_softmax);
}

TEST(RunConfig, AnEpochsStepsMayBeSharedByReplicas) {
  const auto steps = [](const char* gpus) {
    return config({{"gpus", gpus}, {"backend", "mirrored"}, {"steps_per_epoch", "100/replicas"}})
        .train.steps_per_epoch;
  };
  EXPECT_EQ(steps("1"), 100U);
  EXPECT_EQ(steps("2"), 50U);
}

TEST(RunConfig, NullReplicasAreNotCompared) {
  EXPECT_FALSE(config({{"gpus", "2"}, {"backend", "null"}}).train.check_replicas);
  EXPECT_TRUE(config({{"gpus", "2"}, {"backend", "mirrored"}}).train.check_replicas);
}

}  // namespace
}  // namespace paceline

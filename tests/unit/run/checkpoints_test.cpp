#include "run/checkpoints.h"

#include <gtest/gtest.h>

#include "engine/train/checkpoint/manager.h"
#include "engine/train/events/event_log.h"
#include "run/training_run.h"

namespace paceline {
namespace {

CheckpointSetup setup(const std::vector<std::pair<std::string, std::string>>& given) {
  Point point;
  for (const auto& [name, text] : given) point.set(name, parsed_value(name, text, ""));
  const Point p = resolve_parameters(make_workload("mnist-mlp"), point);
  return checkpoint_setup("mnist-mlp", p, make_config(p).checkpoints, {}, "data", false);
}

TEST(RunCheckpoints, TheTableReportsWhatMustMatch) {
  const auto facts = setup({}).facts;
  EXPECT_EQ(facts.at("seed").on_change, OnChange::refused);
  EXPECT_EQ(facts.at("data_hash").on_change, OnChange::refused);
  EXPECT_EQ(facts.at("learning_rate").on_change, OnChange::announced);
  EXPECT_EQ(facts.at("epochs").on_change, OnChange::ignored);
  EXPECT_EQ(facts.at("evaluate").on_change, OnChange::ignored);
  EXPECT_EQ(facts.at("cpus_per_task").on_change, OnChange::ignored);
}

TEST(RunCheckpoints, NotToHaveAScheduleIsAValue) {
  const auto facts = setup({}).facts;
  EXPECT_EQ(facts.at("schedule").value, std::nullopt);
  EXPECT_TRUE(facts.at("schedule").absence_counts);
  EXPECT_FALSE(facts.contains("weights")) << "absent in checkpoints of other versions only";
}

TEST(RunCheckpoints, ALengthCountsWhereTheRateFallsUntilTheEnd) {
  EXPECT_EQ(setup({{"schedule", "cosine"}}).facts.at("epochs").on_change, OnChange::announced);
  EXPECT_EQ(setup({{"schedule", "cosine"}, {"steps", "9"}}).facts.at("steps").on_change,
            OnChange::announced);
}

TEST(RunCheckpoints, NothingIsWrittenUnlessAskedFor) {
  EXPECT_TRUE(setup({}).run.empty());
  const CheckpointSetup some = setup({{"checkpoint_every", "3steps"}, {"keep_checkpoints", "2"}});
  EXPECT_EQ(some.run, "runs/mnist-mlp");
  EXPECT_EQ(some.keep, 2);
  EXPECT_EQ(some.schedule.every, 3);
}

}  // namespace
}  // namespace paceline

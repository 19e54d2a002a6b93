#include "engine/train/config.h"

#include <gtest/gtest.h>

#include "engine/core/error.h"

namespace paceline {
namespace {

double rate(const char* rule, int replicas) {
  TrainConfig config;
  config.learning_rate = 0.01;
  config.replicas = replicas;
  config.rate_rule = parse_rate_rule(rule);
  return scaled_rate(config);
}

TEST(TrainConfig, LearningRateRules) {
  EXPECT_DOUBLE_EQ(rate("none", 16), 0.01);
  EXPECT_DOUBLE_EQ(rate("linear", 16), 0.16);
  EXPECT_DOUBLE_EQ(rate("sqrt", 16), 0.04);
  for (const char* rule : {"none", "linear", "sqrt"}) EXPECT_DOUBLE_EQ(rate(rule, 1), 0.01);
  EXPECT_THROW(parse_rate_rule("cubic"), Error);
}

}  // namespace
}  // namespace paceline

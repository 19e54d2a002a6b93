#include <gtest/gtest.h>

#include "engine/train/config.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(Goal, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(parse_goal("test_accuracy=0.98").text(), "test_accuracy>=0.98");
  EXPECT_EQ(parse_goal("test_accuracy>=0.98").text(), "test_accuracy>=0.98");
  EXPECT_EQ(parse_goal("test_loss<=0.1").text(), "test_loss<=0.1");
  EXPECT_EQ(parse_goal("test_loss=0.1").text(), "test_loss<=0.1");
  for (const char* text : {"", "=", "accuracy=0.9", "test_accuracy", "test_accuracy<=0.9",
                           "test_loss>=0.1", "test_top5=1", "test_accuracy=", "test_accuracy=nan",
                           "test_loss=1e999", "test_accuracy==0.9", "<=0.1"}) {
    expect_error(ErrorKind::usage, {"until cannot be", "test_accuracy=0.98"},
                 [&] { parse_goal(text); });
  }
  expect_error(ErrorKind::usage, {"a share of the samples"},
               [] { parse_goal("test_accuracy=98"); });
  expect_error(ErrorKind::usage, {"above 0"}, [] { parse_goal("test_loss=0"); });
}

TEST(Goal, IsMetByAnEvaluation) {
  EpochFacts good;
  good.test_loss = 0.1;
  good.test_accuracy = 0.98;
  EXPECT_TRUE(parse_goal("test_accuracy=0.98").met_by(good));
  EXPECT_FALSE(parse_goal("test_accuracy=0.9801").met_by(good));
  EXPECT_TRUE(parse_goal("test_loss=0.1").met_by(good));
  EXPECT_FALSE(parse_goal("test_loss=0.09").met_by(good));
  EXPECT_FALSE(parse_goal("test_loss=0.1").met_by(EpochFacts{})) << "not evaluated";
}

}  // namespace
}  // namespace paceline

#include <gtest/gtest.h>

#include "slurm/job_array.h"

namespace paceline {
namespace {

using Elements = std::vector<int>;

TEST(ArrayId, EveryFormThatSlurmPrints) {
  struct Case {
    const char* text;
    std::int64_t job;
    Elements elements;
    int throttle;
    bool cut_short;
  };
  const Case cases[] = {
      {"5", 5, {}, 0, false},
      {"5_3", 5, {3}, 0, false},
      {"5_[7-9%2]", 5, {7, 8, 9}, 2, false},
      {"5_[1,4,6-8]", 5, {1, 4, 6, 7, 8}, 0, false},
      {"1234567_[0-20:4]", 1234567, {0, 4, 8, 12, 16, 20}, 0, false},
      {" 5_[3] ", 5, {3}, 0, false},
      {"5_[1,3,5,...]", 5, {1, 3, 5}, 0, true},
      {"5_[1-3,5...]", 5, {1, 2, 3, 5}, 0, true},
      {"5_[0-1000%1]", 5, Elements(1001), 1, false},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.text);
    const auto id = parse_array_id(each.text);
    ASSERT_TRUE(id);
    EXPECT_EQ(id->job, each.job);
    EXPECT_EQ(id->elements.size(), each.elements.size());
    if (each.elements.size() < 100) {
      EXPECT_EQ(id->elements, each.elements);
    }
    EXPECT_EQ(id->throttle, each.throttle);
    EXPECT_EQ(id->cut_short, each.cut_short);
  }
}

TEST(ArrayId, WhatIsNoJobIsNone) {
  for (const char* text : {"", "x", "5.batch", "5_3.0", "5_", "5_[", "5_[]", "5_[3", "5_[8-6]",
                           "5_[1-9:0]", "5_-3", "-5", "0", "5_[1-99999999999]", "5_3%", "5_[a]"}) {
    EXPECT_FALSE(parse_array_id(text)) << text;
  }
}

}  // namespace
}  // namespace paceline

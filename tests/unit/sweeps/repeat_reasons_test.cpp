#include <gtest/gtest.h>

#include "sweeps/study_plan.h"

namespace paceline {
namespace {

TEST(RepeatReasons, AReasonIsReportedOnce) {
  EXPECT_EQ(summarize_reasons({}), "");
  EXPECT_EQ(summarize_reasons({{2, "killed"}}), "repeat 2: killed");
  EXPECT_EQ(summarize_reasons({{3, "a"}, {1, "a"}, {2, "b"}}), "repeats 1, 3: a; repeat 2: b");
  EXPECT_EQ(summarize_reasons({{1, "a"}, {2, "a"}, {3, "a"}, {4, "a"}, {6, "a"}}, " "),
            "repeats 1 to 4, 6 a");
}

TEST(RepeatReasons, TheirOwnNumbersMakeNoOtherReason) {
  EXPECT_EQ(summarize_reasons(
                {{1, "lost (7_0)", "7_0"}, {2, "lost (7_1)", "7_1"}, {3, "lost (8_0)", "7_2"}}),
            "repeats 1, 2: lost (7_0, 7_1); repeat 3: lost (8_0)");
  std::vector<RepeatReason> many;
  for (int i = 0; i < 9; ++i) {
    const std::string element = "7_" + std::to_string(i);
    many.push_back({i + 1, element + " left no record", element});
  }
  EXPECT_EQ(summarize_reasons(many), "repeats 1 to 9: 7_0, 7_1, 7_2 and 6 more left no record");
}

}  // namespace
}  // namespace paceline

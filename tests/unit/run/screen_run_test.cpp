// What a screen asks of its surroundings, and its pairs.
#include "run/screen/screen_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace paceline {
namespace {

TEST(ScreenRun, TheSwitchIsTheInnermostOfSlurmsTopology) {
  EXPECT_EQ(innermost_switch("s0.s2.cn12", "switch.switch.node"), "s2");
  EXPECT_EQ(innermost_switch("b1.cn12", "block.node"), "b1");
  EXPECT_EQ(innermost_switch("cn12", "node"), "");
  EXPECT_EQ(innermost_switch("", ""), "");
  EXPECT_EQ(innermost_switch("s0.cn12", "node"), "");
}

TEST(ScreenRun, EachNodeMeetsOthersAndNoPairTwice) {
  for (const int count : {2, 3, 4, 5, 8, 64, 1000, 4096}) {
    SCOPED_TRACE(count);
    std::set<std::pair<int, int>> all;
    std::size_t pairs = 0;
    const auto matchings = draw_matchings(count, 7);
    EXPECT_EQ(matchings.size(), static_cast<std::size_t>(std::ceil(std::log2(count))));
    for (const Matching& matching : matchings) {
      std::set<int> busy;
      for (const auto& [a, b] : matching) {
        EXPECT_LT(a, b);
        EXPECT_LT(b, count);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second);
        all.emplace(a, b);
        ++pairs;
      }
      EXPECT_EQ(matching.size(), static_cast<std::size_t>(count) / 2);
    }
    EXPECT_EQ(all.size(), pairs);
  }
  EXPECT_TRUE(draw_matchings(1, 7).empty());
  EXPECT_EQ(draw_matchings(64, 7), draw_matchings(64, 7));
  EXPECT_NE(draw_matchings(64, 7), draw_matchings(64, 8));
}

}  // namespace
}  // namespace paceline

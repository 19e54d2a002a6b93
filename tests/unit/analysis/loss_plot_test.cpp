#include "analysis/explain/loss_plot.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

PointExplanation point(const std::string& name, const Loss& lost, std::vector<Loss> losses) {
  PointExplanation made;
  made.name = name;
  made.lost = lost;
  made.losses = std::move(losses);
  return made;
}

double value_of(const Bars& bars, const std::string& series, std::size_t group) {
  for (const BarSeries& each : bars.series) {
    if (each.name == series) return each.bars.at(group)->value;
  }
  return -1;
}

TEST(LossPlot, NamesOnlyCausesBeyondTheNoise) {
  Explanation explanation;
  explanation.title = "mnist";
  explanation.points.push_back(point("a", {"", 0.30, Interval{0.25, 0.35}},
                                     {{"communication", 0.20, Interval{0.15, 0.25}},
                                      {"compute", 0.08, Interval{-0.02, 0.18}},
                                      {"input", 0.04, std::nullopt},
                                      {"launch", -0.02, Interval{-0.03, -0.01}}}));
  explanation.points.push_back(
      point("b", {"", 0.05, std::nullopt}, {{"compute", 0.05, Interval{0.01, 0.09}}}));
  explanation.points.push_back(
      point("gained", {"", -0.05, std::nullopt}, {{"compute", -0.05, std::nullopt}}));
  explanation.points.emplace_back().name = "base";
  const std::vector<Plot> plots = loss_plots(explanation);
  ASSERT_EQ(plots.size(), 1U);
  EXPECT_EQ(plots[0].title, "Efficiency lost: mnist");
  EXPECT_EQ(plots[0].subtitle.find("interval"), std::string::npos);  // one has none
  const auto& bars = std::get<Bars>(plots[0].body);
  EXPECT_TRUE(bars.stacked);
  EXPECT_EQ(bars.groups, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(bars.notes, (std::vector<std::string>{"30.0 [25.0, 35.0]", "5.0"}));
  ASSERT_EQ(bars.series.size(), 3U);
  EXPECT_EQ(bars.series.back().name, "cannot be told from noise");
  EXPECT_DOUBLE_EQ(value_of(bars, "communication", 0), 20);
  EXPECT_DOUBLE_EQ(value_of(bars, "communication", 1), 0);
  EXPECT_DOUBLE_EQ(value_of(bars, "compute", 0), 0);
  EXPECT_DOUBLE_EQ(value_of(bars, "compute", 1), 5);
  EXPECT_DOUBLE_EQ(value_of(bars, "cannot be told from noise", 0), 12);
}

TEST(LossPlot, SaysHowManyItLeavesOut) {
  Explanation explanation;
  for (int i = 0; i < 20; ++i) {
    explanation.points.push_back(point(std::to_string(i), {"", 0.1, Interval{0.05, 0.15}},
                                       {{"compute", 0.1, Interval{0.05, 0.15}}}));
  }
  const std::vector<Plot> plots = loss_plots(explanation);
  EXPECT_EQ(std::get<Bars>(plots.at(0).body).groups.size(), 16U);
  EXPECT_NE(plots[0].subtitle.find("95 % interval; the first 16 of 20"), std::string::npos);
}

TEST(LossPlot, IsNotDrawnWhereNothingWasLost) {
  Explanation explanation;
  explanation.points.emplace_back().name = "base";
  EXPECT_TRUE(loss_plots(explanation).empty());
}

}  // namespace
}  // namespace paceline

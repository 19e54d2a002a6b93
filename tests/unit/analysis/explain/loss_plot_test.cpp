#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "analysis/explain/explain.h"

namespace paceline {
namespace {

Judged known(double value, double low, double high) {
  return {value, Interval{low, high}};
}
Judged unknown(double value) {
  return {value, WeakEvidence{.few = true}};
}

PointExplanation point(const std::string& name, const Judged& lost, std::vector<Loss> losses) {
  PointExplanation made;
  made.name = name;
  made.lost = lost;
  made.losses = std::move(losses);
  return made;
}

const BarSeries& make_series(const Bars& bars, const std::string& name) {
  const auto it = std::ranges::find(bars.series, name, &BarSeries::name);
  if (it == bars.series.end()) throw std::out_of_range(name);
  return *it;
}

double environment_value(const Bars& bars, const std::string& series, std::size_t group) {
  return make_series(bars, series).bars.at(group)->value;
}

TEST(LossPlot, NamesOnlyCausesBeyondTheNoise) {
  Explanation explanation;
  explanation.title = "mnist";
  explanation.points.push_back(point("a", known(0.30, 0.25, 0.35),
                                     {{"communication", known(0.20, 0.15, 0.25)},
                                      {"compute", known(0.08, -0.02, 0.18)},
                                      {"input", unknown(0.04)},
                                      {"launch", known(-0.02, -0.03, -0.01)}}));
  explanation.points.push_back(point("b", unknown(0.05), {{"compute", known(0.05, 0.01, 0.09)}}));
  explanation.points.push_back(
      point("gained", known(-0.05, -0.06, -0.04), {{"compute", known(-0.05, -0.06, -0.04)}}));
  explanation.points.push_back(point("ideal", unknown(0), {{"compute", unknown(0.0005)}}));
  explanation.points.emplace_back().name = "base";
  const std::vector<Plot> plots = loss_plots(explanation);
  ASSERT_EQ(plots.size(), 1U);
  EXPECT_EQ(plots[0].title, "Lost efficiency: mnist");
  EXPECT_EQ(plots[0].subtitle.find("interval"), std::string::npos);  // one has none
  const auto& bars = std::get<Bars>(plots[0].body);
  EXPECT_TRUE(bars.stacked);
  EXPECT_EQ(bars.groups, (std::vector<std::string>{"a", "b", "gained"}));
  EXPECT_EQ(bars.notes, (std::vector<std::string>{"32.0 - 2.0 = 30.0 [25.0, 35.0]", "5.0",
                                                  "-5.0 [-6.0, -4.0]"}));
  ASSERT_EQ(bars.series.size(), 4U);
  EXPECT_EQ(bars.series.back().name, "cannot be distinguished from noise");
  EXPECT_DOUBLE_EQ(environment_value(bars, "communication", 0), 20);
  EXPECT_DOUBLE_EQ(environment_value(bars, "communication", 1), 0);
  EXPECT_DOUBLE_EQ(environment_value(bars, "compute", 0), 0);
  EXPECT_DOUBLE_EQ(environment_value(bars, "compute", 1), 5);
  EXPECT_DOUBLE_EQ(environment_value(bars, "compute", 2), -5);
  EXPECT_DOUBLE_EQ(environment_value(bars, "launch", 0), -2);
  EXPECT_DOUBLE_EQ(environment_value(bars, "cannot be distinguished from noise", 0), 12);
}

TEST(LossPlot, EachCauseAndTheNoiseHaveTheirColours) {
  Explanation explanation;
  std::vector<Loss> losses;
  for (const char* label :
       {"input", "communication", "straggler", kWaiting, "launch", "compute", "outside of steps"}) {
    losses.push_back({label, known(0.1, 0.05, 0.15)});
  }
  losses.push_back({"compute", unknown(0.1)});
  explanation.points.push_back(point("a", known(0.8, 0.7, 0.9), losses));
  const auto plots = loss_plots(explanation);
  std::set<std::size_t> colours;
  const auto& bars = std::get<Bars>(plots.at(0).body);
  for (const BarSeries& series : bars.series) colours.insert(series.colour.value());
  EXPECT_EQ(colours.size(), 8U);
}

TEST(LossPlot, ReportsHowManyItLeavesOut) {
  Explanation explanation;
  for (int i = 0; i < 20; ++i) {
    explanation.points.push_back(
        point(std::to_string(i), known(0.1, 0.05, 0.15), {{"compute", known(0.1, 0.05, 0.15)}}));
  }
  const std::vector<Plot> plots = loss_plots(explanation);
  EXPECT_EQ(std::get<Bars>(plots.at(0).body).groups.size(), 16U);
  EXPECT_NE(plots[0].subtitle.find("95 % interval; the first 16 of 20"), std::string::npos);
}

TEST(LossPlot, IsNotDrawnWhereNothingWasLost) {
  Explanation explanation;
  explanation.points.emplace_back().name = "base";
  explanation.points.push_back(
      point("a", known(0.0004, -0.001, 0.002), {{"compute", known(0.0004, -0.001, 0.002)}}));
  EXPECT_TRUE(loss_plots(explanation).empty());
}

}  // namespace
}  // namespace paceline

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/findings/findings.h"
#include "analysis/study/switches.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

// The study of samples.h and its one-replica point once more in each round, `factors` as slow.
std::vector<Json> controlled_study(const std::vector<double>& factors) {
  std::vector<Json> records = drifting_study();
  for (std::size_t i = 0; i < factors.size(); ++i) {
    Json json = records.at(2 * i);
    const double seconds = json["timing"]["fit_seconds"];
    json["timing"]["fit_seconds"] = seconds * factors[i];
    json["parameters"]["control"] = true;
    records.push_back(json);
  }
  return records;
}

Study make_study(const std::vector<Json>& records) {
  return make_studies(canonical_content(records), {}, {}).at(0);
}

std::vector<ControlCheck> check_controls(const std::vector<Json>& records) {
  const Study study = make_study(records);
  return check_controls(study, compare(study, Base::matched));
}

TEST(Control, IsComparedByRoundsWithItsPoint) {
  const auto controls = check_controls(controlled_study({1.01, 1.00, 1.02}));
  ASSERT_EQ(controls.size(), 1U);
  const Ratio& ratio = controls[0].ratio;
  EXPECT_EQ(ratio.kind, RatioKind::paired);  // drift of the rounds, 30 %, is not in it
  EXPECT_NEAR(ratio.estimate.value, std::cbrt(1.01 * 1.00 * 1.02), 1e-9);
  EXPECT_FALSE(controls[0].differs());
  expect_parts(control_line(controls[0]), {"1 replica differs from itself by +1.0 % [-1.5, +3.5]"});
}

TEST(Control, ThatDiffersIsAWarningUnlessThereAreTwoRunsOnly) {
  const auto expect = [](const std::vector<double>& factors, bool differs, const char* part) {
    const auto controls = check_controls(controlled_study(factors));
    ASSERT_EQ(controls.size(), 1U);
    EXPECT_EQ(controls[0].differs(), differs);
    expect_parts(control_line(controls[0]), {part});
  };
  expect({1.05, 1.051, 1.049}, true, "find out why");
  expect({1.05, 1.0501}, false, "too few runs");
}

TEST(Control, DisturbedRunsAreNotCalledFew) {
  std::vector<Json> records = controlled_study({1.01, 1.0, 1.02});
  for (std::size_t i = 0; i < 6; ++i) records[i]["flags"]["throttled"] = true;
  const auto controls = check_controls(records);
  ASSERT_EQ(controls.size(), 1U);
  const std::string line = control_line(controls[0]);
  expect_no_parts(line, {"too few"});
  expect_parts(line, {"the point has only disturbed runs to judge by"});
}

TEST(Control, UnequalNumbersOfRunsAreBothReported) {
  const auto controls = check_controls(controlled_study({1.01, 1.0}));
  ASSERT_EQ(controls.size(), 1U);
  expect_parts(control_line(controls[0]), {"(3 runs, and 2 of the control)"});
}

TEST(Control, NeverEntersARow) {
  const Study with = make_study(controlled_study({9, 9, 9})),
              without = make_study(drifting_study());
  ASSERT_EQ(with.rows.size(), without.rows.size());
  for (std::size_t i = 0; i < with.rows.size(); ++i) {
    EXPECT_EQ(with.rows[i].runs.size(), without.rows[i].runs.size());
  }
  EXPECT_EQ(with.gaps.size(), without.gaps.size());
  EXPECT_TRUE(check_controls(drifting_study()).empty());
}

TEST(Control, OneThatFailedOrWasTracedDoesNotCount) {
  std::vector<Json> records = controlled_study({1.01, 1.0, 1.02});
  records[6]["status"] = "failed";
  records[7]["flags"]["traced"] = true;
  const auto controls = check_controls(records);
  ASSERT_EQ(controls.size(), 1U);
  EXPECT_EQ(controls[0].ratio.estimate.count, 1U);
}

}  // namespace
}  // namespace paceline

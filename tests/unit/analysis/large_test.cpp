// Time that grows as the study does: four times the rows take about four times as long.
#include <gtest/gtest.h>

#include <ctime>

#include "analysis/explain/explain.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

struct LargeStudy {
  StoreContent content;
  std::vector<ExpectedRuns> plans;
};

// Rows of 1 and 4 replicas, half of them with synthetic input, in a study whose plan names them
// all and as many more.
LargeStudy make_study(int rows) {
  LargeStudy study;
  ExpectedRuns plan{"quick", "mnist-cnn", 1, {}};
  for (int i = 0; i < 2 * rows; ++i) {
    const int gpus = i % 2 == 0 ? 1 : 4;
    Json json = sample_record({.gpus = gpus, .fit_seconds = 20.0 / gpus});
    json["parameters"]["input"] = i / 2 % 2 == 0 ? "data" : "synthetic";
    json["parameters"]["bucket_mb"] = 1.0 + i / 4;
    Point point;
    for (const auto& [name, value] : json["parameters"].items()) {
      if (value.is_number_integer()) {
        point.set(name, value.get<std::int64_t>());
      } else if (value.is_number()) {
        point.set(name, value.get<double>());
      } else if (name != "workload") {
        point.set(name, value.get<std::string>());
      }
    }
    Point varied;
    for (const char* name : {"gpus", "input", "bucket_mb"}) varied.set(name, *point.find(name));
    json["point"] = varied.text();
    plan.points.push_back(point);
    if (i < rows) study.content.records.emplace_back(json, "record " + std::to_string(i));
  }
  study.plans.push_back(std::move(plan));
  return study;
}

double seconds_for(int rows) {
  const LargeStudy study = make_study(rows);
  const std::clock_t start = std::clock();
  const auto all = explain(study.content, Base::matched, {}, study.plans);
  EXPECT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().study.rows.size(), static_cast<std::size_t>(rows));
  EXPECT_EQ(all.front().study.gaps.size(), static_cast<std::size_t>(rows));
  EXPECT_FALSE(all.front().points[0].counterfactuals.empty());
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(Large, TimeGrowsAsTheStudyDoes) {
  constexpr int kRows = 2000;
  seconds_for(kRows);
  const double few = seconds_for(kRows), many = seconds_for(4 * kRows);
  EXPECT_LT(many, 9 * few) << "sixteen times is a quadratic step; " << few << " s";
}

}  // namespace
}  // namespace paceline

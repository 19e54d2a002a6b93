#include "run/until_precise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/facts/timing.h"
#include "results/run_record.h"
#include "run/plan_study.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/results/sample_record.h"
#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

// Two points; what their runs take is up to a test.
class UntilPrecision : public ::testing::Test {
 protected:
  UntilPrecision() {
    plan_.spec = spec_with(
        R"("fixed": {"backend": "null", "cpus_per_replica": 1}, "axes": {"gpus": [1, 2]})");
    plan_.spec.repeats = 3;
    plan_.expansion = expand(plan_.spec, 8, Unbuilt::keep);
    precision_.share = 0.02;
    precision_.most = 12;
  }

  // Each run as it ends: seconds, 0: it fails. Returns the number of runs of each point.
  std::vector<int> run(const std::function<double(std::size_t point, int repeat)>& seconds,
                       bool throttled = false) {
    UntilPrecise until(plan_, precision_);
    std::vector<int> runs(2);
    for (auto next = until.next(inventory(), store()); !next.empty();
         next = until.next(inventory(), store())) {
      waves_.push_back(next.size());
      for (const RunStatus& each : next) {
        if (!until.is_affordable(each.run)) continue;
        const double took = seconds(each.run.point, each.run.repeat);
        until.took(each.run, took);
        ++runs[each.run.point];
        if (took <= 0) continue;
        Json record = sample_record({.gpus = static_cast<int>(each.run.point) + 1,
                                     .repeat = each.run.repeat,
                                     .fit_seconds = took});
        record["flags"]["throttled"] = throttled;
        done_.emplace(std::pair(each.run.point, each.run.repeat),
                      Record(record, std::to_string(done_.size())));
      }
    }
    lines_ = until.lines();
    return runs;
  }

  std::vector<RunStatus> inventory() const {
    std::vector<RunStatus> all;
    for (const ScheduledRun& run : schedule(2, precision_.most, true, 0)) {
      RunStatus status;
      status.run = run;
      if (const auto it = done_.find({run.point, run.repeat}); it != done_.end()) {
        status.state = RunState::done;
        status.why = it->second.where();
        status.seconds = *it->second->timing->fit_seconds;
      }
      all.push_back(status);
    }
    return all;
  }

  StoreContent store() const {
    StoreContent content;
    for (const auto& [key, record] : done_) content.records.push_back(record);
    return content;
  }

  StudyPlan plan_;
  TargetPrecision precision_;
  std::map<std::pair<std::size_t, int>, Record> done_;
  std::vector<std::size_t> waves_;
  std::vector<std::string> lines_;
};

// +-`spread`, in turn.
double noisy(double seconds, double spread, int repeat) {
  return seconds * std::exp(spread * (repeat % 2 == 0 ? 1 : -1));
}

TEST_F(UntilPrecision, RunsAreSpentWhereIntervalsAreWide) {
  const std::vector<int> runs = run(
      [](std::size_t point, int repeat) { return noisy(10, point == 0 ? 0.001 : 0.012, repeat); });
  EXPECT_EQ(runs[0], 3);
  EXPECT_GT(runs[1], 5);
  EXPECT_LT(runs[1], 12);
  EXPECT_EQ(waves_[0], 6U);
  EXPECT_EQ(waves_[1], 1U) << "only the wide one goes on";
  expect_parts(lines_.at(0), {"2 of 2 points within ±2.00 %", "the same number for every point"});
}

TEST_F(UntilPrecision, APointThatIsNeverPreciseEnds) {
  EXPECT_EQ(
      run([](std::size_t point, int repeat) { return noisy(10, point == 0 ? 0 : 0.2, repeat); }),
      (std::vector<int>{3, 12}));
  expect_parts(lines_.at(0), {"1 of 2 points"});
  expect_parts(lines_.at(1), {"not precise: gpus=2,", "±", "after 12 runs"});
}

TEST_F(UntilPrecision, FailuresAndDisturbedRunsEnd) {
  EXPECT_EQ(run([](std::size_t point, int) { return point == 0 ? 10.0 : 0.0; }),
            (std::vector<int>{3, 3}));
  expect_parts(lines_.at(1), {"gpus=2,", "no interval after 0 runs", "none of its runs counts"});
  done_.clear();
  EXPECT_EQ(run([](std::size_t, int) { return 10.0; }, true), (std::vector<int>{3, 3}));
}

TEST_F(UntilPrecision, ASecondCallGoesOnWhereItWas) {
  const auto seconds = [](std::size_t, int repeat) { return noisy(10, 0.012, repeat); };
  const std::vector<int> all = run(seconds);
  std::erase_if(done_, [](const auto& each) { return each.first.second > 4; });
  EXPECT_EQ(run(seconds)[0], all[0] - 4);
}

TEST_F(UntilPrecision, TheBudgetEndsIt) {
  precision_.max_hours = 3600.0 * 8 / 3600;  // gpus=1 takes an hour a run, gpus=2 two core-hours
  const auto seconds = [](std::size_t point, int repeat) {
    return noisy(3600, point == 0 ? 0.02 : 0.0001, repeat);
  };
  const std::vector<int> runs = run(seconds);
  EXPECT_LE(runs[0] + 2 * runs[1], 9) << "a run more than is affordable, at most";
  EXPECT_GE(runs[0] + 2 * runs[1], 7);
  expect_parts(lines_.back(), {"the budget ends it", "of 8 core-hours are spent"});
  expect_parts(catch_error([&] { check_budget_kind(plan_, true); }), {"--max-core-hours"});
  EXPECT_EQ(catch_error([&] { check_budget_kind(plan_, false); }), "");
}

// For a queue, a wave has as many runs as are likely to be needed.
TEST_F(UntilPrecision, WavesAreAsLargeAsNeeded) {
  precision_.in_waves = true;
  const std::vector<int> runs =
      run([](std::size_t, int repeat) { return noisy(10, 0.014, repeat); });
  EXPECT_EQ(waves_[0], 6U);
  EXPECT_GT(waves_[1], 3U);
  EXPECT_LE(waves_.size(), 4U) << runs[0];
}

TEST(PrecisionOfOptions, TheSpecGetsTheFirstRepeats) {
  StudyOptions options;
  Spec spec = spec_with(R"("axes": {"gpus": [1]}, "repeats": 9)");
  EXPECT_EQ(read_target_precision(options, spec).share, 0);
  EXPECT_EQ(spec.repeats, 9);
  EXPECT_FALSE(spec.sequential);
  options.until_precision = "2%";
  EXPECT_EQ(read_target_precision(options, spec).share, 0.02);
  EXPECT_EQ(spec.repeats, 4) << "3 runs of a base have no anytime-valid ratio";
  EXPECT_TRUE(spec.sequential);
  options.repeats = 3;
  expect_parts(catch_error([&] { read_target_precision(options, spec); }), {"--repeats"});
  options.repeats = 40;
  expect_parts(catch_error([&] { read_target_precision(options, spec); }), {"--max-repeats"});
  options.until_precision = "2";
  expect_parts(catch_error([&] { read_target_precision(options, spec); }), {"--until-precision"});
}

}  // namespace
}  // namespace paceline

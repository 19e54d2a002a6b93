#include "slurm/job_array.h"

#include <gtest/gtest.h>

#include <set>

#include "results/run_record.h"
#include "tests/unit/results/sample_record.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

const std::string kCassava = PACELINE_SOURCE_DIR "/sweeps/nyu-cassava.json";

StudyPlan cassava(const std::vector<std::string>& backends) {
  Spec spec = read_spec(kCassava);
  spec.fixed.set("device", std::string("cuda"));
  spec.repeats = 3;
  StudyPlan plan = make_plan(std::move(spec));
  auto& points = plan.expansion.points;
  std::erase_if(points, [&](const PlannedPoint& planned) {
    return std::count(backends.begin(), backends.end(), planned.parameters.text("backend")) == 0;
  });
  plan.runs.clear();
  for (const ScheduledRun& run : schedule(points.size(), 3, true, 1)) {
    plan.runs.push_back({run, RunState::missing, kNoRecord, 0, false, {}});
  }
  return plan;
}

TEST(JobArray, FourteenShapesOfTwoBackendsAreFourteenArraysOfSix) {
  const StudyPlan plan = cassava({"mpi", "gloo"});
  ASSERT_EQ(plan.expansion.points.size(), 28U);
  const Submission submission = make_submission(plan, site_with(R"("gpus": {"form": "gres"})"));
  ASSERT_EQ(submission.arrays.size(), 14U);
  std::set<JobShape> shapes;
  for (const JobArray& array : submission.arrays) {
    EXPECT_EQ(array.runs.size(), 6U) << array.name;
    EXPECT_EQ(array.shape.ntasks, array.shape.gpus);
    shapes.insert(array.shape);
    for (std::size_t i = 0; i < array.runs.size(); ++i) {
      EXPECT_EQ(array.runs[i].repeat, static_cast<int>(i / 2) + 1) << "interleaved by round";
    }
  }
  EXPECT_EQ(shapes.size(), 14U);
}

// A mirrored task of 4 GPUs and 16 CPUs is another request than 4 tasks.
TEST(JobArray, BackendsOfAnotherLayoutHaveShapesOfTheirOwn) {
  const Submission submission = make_submission(cassava({"mirrored", "mpi", "gloo"}),
                                                site_with(R"("gpus": {"form": "gres"})"));
  EXPECT_EQ(submission.arrays.size(), 24U) << "14 and 14, of which 4 of one GPU are the same";
  std::size_t elements = 0;
  for (const JobArray& array : submission.arrays) elements += array.runs.size();
  EXPECT_EQ(elements, 42U * 3);
}

TEST(JobArray, SplitsAtMaxArraySizeWithoutLoss) {
  const StudyPlan plan = make_plan(parse_spec("s", kFourPoints));
  const Submission submission = make_submission(plan, site_with(""), {}, 5);
  ASSERT_EQ(submission.arrays.size(), 4U);
  std::multiset<std::pair<std::size_t, int>> sent;
  std::set<std::string> names;
  for (const JobArray& array : submission.arrays) {
    EXPECT_LE(array.runs.size(), 5U);
    EXPECT_TRUE(names.insert(array.name).second) << array.name;
    for (const ScheduledRun& run : array.runs) sent.insert({run.point, run.repeat});
  }
  EXPECT_EQ(sent.size(), 12U);
  EXPECT_EQ((std::set<std::pair<std::size_t, int>>(sent.begin(), sent.end()).size()), 12U);
}

TEST(JobArray, GpuHours) {
  const Submission submission = make_submission(
      cassava({"mpi", "gloo"}), site_with(R"("gpus": {"form": "gres"}, "time": {"minutes": 30})"));
  // 6 elements of half an hour, on 1, 2, 3 and 4 GPUs: 4, 3, 3 and 4 shapes.
  EXPECT_DOUBLE_EQ(submission.gpu_hours(), 6 * 0.5 * (4 * 1 + 3 * 2 + 3 * 3 + 4 * 4));
}

class NeedsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Spec spec = parse_spec("s", kFourPoints);
    points_ = make_plan(std::move(spec)).expansion.points;
  }

  void add(const std::string& point, double fit_seconds, int gpus = 2) {
    SampleRun run;
    run.gpus = gpus;
    run.cpus_per_replica = 2;
    run.fit_seconds = fit_seconds;
    Json json = sample_record(run);
    json["point"] = point;
    json["plan"] = {{"memory_bytes", {{"total", 1e9}}}};
    store_.records.emplace_back(json, "r.json");
  }

  std::size_t point_index(const std::string& point) const {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (points_[i].point.text() == point) return i;
    }
    ADD_FAILURE() << point;
    return 0;
  }

  std::vector<PlannedPoint> points_;
  StoreContent store_;
};

TEST_F(NeedsTest, TheSlowestRecordWithAMargin) {
  const Site site = site_with(R"("time": {"minutes": 45, "margin": 2})");
  add("gpus=2,backend=mpi", 300);
  add("gpus=2,backend=mpi", 600);
  const Needs needs(site, points_, store_);
  EXPECT_EQ(needs.of(point_index("gpus=2,backend=mpi")).minutes, 22)
      << "2 x 10 min, and 2 to start";
  EXPECT_EQ(needs.of(point_index("gpus=2,backend=gloo")).minutes, 22) << "of its shape";
  EXPECT_EQ(needs.of(point_index("gpus=1,backend=gloo")).minutes, 45) << "no record: the profile's";
  EXPECT_TRUE(needs.of(point_index("gpus=2,backend=mpi")).time_is_known);
  EXPECT_FALSE(needs.of(point_index("gpus=1,backend=gloo")).time_is_known);
}

TEST_F(NeedsTest, ARunThatTimedOutGetsTwiceTheTimeUpToTheSitesLimit) {
  const Site site = site_with(R"("time": {"minutes": 45, "most_minutes": 80})");
  Needs needs(site, points_, store_);
  needs.timed_out(0, 30);
  needs.timed_out(1, 60);
  EXPECT_EQ(needs.of(0).minutes, 60);
  EXPECT_EQ(needs.of(1).minutes, 80);
  EXPECT_EQ(needs.of(2).minutes, 45);
}

TEST_F(NeedsTest, TheKeyThatRaisesALimit) {
  const Site site = site_with(R"("time": {"minutes": 45, "margin": 2, "most_minutes": 80})");
  add("gpus=2,backend=mpi", 600);
  Needs needs(site, points_, store_);
  EXPECT_STREQ(limit_key(site, needs.of(point_index("gpus=2,backend=mpi"))), "time.margin");
  const std::size_t other = point_index("gpus=1,backend=gloo");
  EXPECT_STREQ(limit_key(site, needs.of(other)), "time.minutes");
  needs.timed_out(other, 40);
  EXPECT_STREQ(limit_key(site, needs.of(other)), "time.most_minutes") << "it allows no more";
}

TEST_F(NeedsTest, MemoryOfANodeFromThePlanOfARecord) {
  add("gpus=2,backend=mpi", 10);
  EXPECT_EQ(Needs(site_with(""), points_, store_).of(0).memory_mb, 0);
  const Site site = site_with(R"("memory": {"form": "mem", "gb_per_replica": 4})");
  const Needs needs(site, points_, store_);
  EXPECT_EQ(needs.of(point_index("gpus=2,backend=mpi")).memory_mb, 3815)
      << "2 x (1.5 + 0.5) GB in MiB";
  EXPECT_EQ(needs.of(point_index("gpus=2,backend=gloo")).memory_mb, 9146) << "2 x (4 GiB + 0.5 GB)";
  const Needs planned(site, points_, store_, [](std::size_t) { return 2e9; });
  EXPECT_EQ(planned.of(point_index("gpus=2,backend=gloo")).memory_mb, 6676)
      << "2 x (1.5 x 2 + 0.5) GB";
  EXPECT_EQ(planned.of(point_index("gpus=2,backend=mpi")).memory_mb, 3815)
      << "a record knows better";
}

}  // namespace
}  // namespace paceline

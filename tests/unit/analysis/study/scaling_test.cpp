#include "analysis/study/scaling.h"

#include <gtest/gtest.h>

#include "engine/core/error.h"
#include "engine/facts/timing.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

struct Shape {
  int gpus;
  std::optional<double> samples, steps, batch_per_replica;
};

Run make_run(const Shape& shape) {
  Run run;
  RunRecord& record = own_record(run);
  record.layout.gpus = shape.gpus;
  record.throughput->samples = shape.samples;
  record.throughput->steps = shape.steps;
  run.batch_per_replica = shape.batch_per_replica;
  if (run.batch_per_replica) run.global_batch = *run.batch_per_replica * shape.gpus;
  return run;
}

Scaling derived(const std::vector<Shape>& shapes) {
  std::vector<Run> runs;
  for (const Shape& shape : shapes) {
    runs.push_back(make_run(shape));
    runs.back().where = "record " + std::to_string(runs.size() - 1);
  }
  std::vector<const Run*> pointers;
  for (const Run& run : runs) pointers.push_back(&run);
  return classify_scaling(pointers);
}

TEST(Scaling, FollowsFromWhatIsFixed) {
  EXPECT_EQ(derived({{1, 6400, 100, 64}, {2, 6400, 100, 32}, {4, 6400, 100, 16}}), Scaling::strong);
  EXPECT_EQ(derived({{1, 6400, 100, 64}, {2, 6400, 50, 64}}), Scaling::fixed_epochs);
  EXPECT_EQ(derived({{1, 6400, 100, 64}, {2, 12800, 100, 64}}), Scaling::weak);
  EXPECT_EQ(derived({{2, 6400, 50, 64}, {2, 6400, 50, 64}}), Scaling::one_size);
}

// A step's samples are the tolerance of totals, and here two steps are all.
TEST(Scaling, AFewStepsAreNoChangeOfTheType) {
  EXPECT_EQ(derived({{1, 128, 2, 64}, {2, 256, 2, 64}}), Scaling::weak);
  EXPECT_EQ(derived({{1, 64, 1, 64}, {2, 64, 1, 64}}), Scaling::fixed_epochs);
}

// How many samples a goal takes is a result, not another study.
TEST(Scaling, RunsThatEndWithAGoalAreJudgedByTheirBatch) {
  std::vector<paceline::Run> runs = {make_run({1, 180000, {}, 64}), make_run({2, 240000, {}, 64})};
  for (auto& run : runs) run.goal = "test_accuracy>=0.98";
  EXPECT_EQ(classify_scaling({&runs[0], &runs[1]}), Scaling::to_goal);
  runs[1].global_batch = 64;
  EXPECT_EQ(classify_scaling({&runs[0], &runs[1]}), Scaling::strong);
  runs[1].goal = "test_accuracy>=0.99";
  EXPECT_THROW(classify_scaling({&runs[0], &runs[1]}), Error);
}

// 60,000 samples in batches of 128 drop 96, of 256 drop 96, of 512 drop 96 + ...
TEST(Scaling, ADroppedLastBatchIsNoChangeOfTheTotal) {
  EXPECT_EQ(derived({{1, 59968, 937, 64}, {2, 59904, 468, 64}, {4, 59904, 234, 64}}),
            Scaling::fixed_epochs);
}

TEST(Scaling, PublishedRatesAreJudgedByTheirBatch) {
  EXPECT_EQ(derived({{1, {}, {}, 128}, {8, {}, {}, 128}}), Scaling::weak);
  EXPECT_EQ(derived({{8, {}, {}, 400}, {16, {}, {}, 200}}), Scaling::strong);
  EXPECT_EQ(derived({{1, {}, {}, {}}, {8, {}, {}, {}}}), Scaling::unknown);
}

std::string refusal(const std::vector<Shape>& shapes) {
  return catch_error(ErrorKind::usage, [&] { derived(shapes); });
}

TEST(Scaling, MixturesAreRefusedByRecord) {
  for (const auto& said : {refusal({{1, 6400, 100, 64}, {2, 6400, 50, 64}, {2, 12800, 100, 64}}),
                           refusal({{1, 6400, 100, 64}, {2, 64000, 500, 64}})}) {
    expect_parts(said, {"neither the total of samples nor steps"});
  }
  const std::string said =
      refusal({{1, 6400, 100, 64}, {2, 6400, 50, 64}, {2, 6400, 100, 32}, {4, 6400, 50, 32}});
  expect_parts(said,
               {"neither the batch per replica nor the global batch", "record 0 and record 2"});
  expect_parts(refusal({{1, {}, {}, 64}, {2, {}, {}, 60}}), {"record 1"});
}

TEST(Scaling, AMissingBatchIsTheCure) {
  constexpr char kCure[] = "state batch_per_replica (in a spec under \"fixed\"";
  expect_parts(refusal({{1, 6400, {}, {}}, {2, 12800, {}, {}}}), {kCure});
  EXPECT_EQ(derived({{1, 6400, 100, 64}, {2, 12800, 100, 64}}), Scaling::weak) << "it cures";
  expect_no_parts(refusal({{1, 6400, 100, 64}, {2, 64000, 500, 64}}), {kCure});
}

// Of four sizes one has another batch: that one is named, and what it breaks.
TEST(Scaling, TheOddRowIsNamed) {
  expect_parts(
      refusal({{1, 6400, 100, 64}, {2, 12800, 100, 64}, {4, 25600, 100, 64}, {8, 25600, 100, 32}}),
      {"neither the total of samples nor the batch per replica is the same in all "
       "runs (1 replica, samples 6400, steps 100, batch per replica 64; 8 replicas, "
       "samples 25600, steps 100, batch per replica 32)"});
  const std::string steps =
      refusal({{1, 6400, 100, 64}, {2, 12800, 100, 64}, {4, 25600, 100, 64}, {8, 30720, 60, 64}});
  expect_parts(steps, {"nor the number of steps is", "8 replicas, samples 30720, steps 60"});
}

// Pages that give times and rates say what their runs hold fixed, within what they round.
TEST(Scaling, PublishedTimesAndRatesReportTheirTotal) {
  const auto of = [](const std::vector<std::pair<double, double>>& rates_and_times) {
    std::vector<paceline::Run> runs(rates_and_times.size());
    std::vector<const paceline::Run*> pointers;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i] = make_run({1 << i, {}, {}, 64});
      runs[i].samples_per_second = rates_and_times[i].first;
      own_record(runs[i]).timing->fit_seconds = rates_and_times[i].second;
      pointers.push_back(&runs[i]);
    }
    return classify_scaling(pointers);
  };
  EXPECT_EQ(of({{12000, 10}, {24100, 5}, {47000, 2.5}}), Scaling::fixed_epochs);
  EXPECT_EQ(of({{12000, 10}, {23500, 10.2}, {47000, 10.1}}), Scaling::weak);
  EXPECT_EQ(of({{12000, 10}, {24000, 7}}), Scaling::unknown);
}

// Runs that state only their time, and what their study says of their work.
Scaling of_times(const std::string& work, const std::vector<std::int64_t>& epochs = {1, 1, 1}) {
  std::vector<paceline::Run> runs(epochs.size());
  std::vector<const paceline::Run*> pointers;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i] = make_run({1 << i, {}, {}, {}});
    RunRecord& record = own_record(runs[i]);
    record.timing->fit_seconds = 10;
    record.parameters.set("epochs", epochs[i]);
    if (!work.empty()) record.parameters.set("work", work);
    pointers.push_back(&runs[i]);
  }
  return classify_scaling(pointers);
}

TEST(Scaling, OfTimesAloneTheWorkIsTakenToBeTheSame) {
  EXPECT_EQ(of_times(""), Scaling::same_work);
  EXPECT_EQ(of_times("fixed"), Scaling::same_work);
  EXPECT_EQ(of_times("grows"), Scaling::weak);
  EXPECT_FALSE(compares_rates(Scaling::same_work));
  expect_error(ErrorKind::usage, {"they state only times, and other work"}, [] {
    of_times("", {1, 1, 2});
  });
}

}  // namespace
}  // namespace paceline

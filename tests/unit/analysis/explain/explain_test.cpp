#include "analysis/explain/explain.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/gzipped.h"
#include "tests/unit/analysis/samples.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string all_text(const StoreContent& content, Base base = Base::matched) {
  std::string text;
  for (const Explanation& each : explain(content, base)) text += explanation_text(each);
  return text;
}

StoreContent reference_side(const std::string& name) {
  return load_store(std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference" / name);
}

// With fixed epochs a constant fraction is no proof of a fixed share: the steps fall as 1/N.
TEST(Explain, CassavaBestHasCausesThatTimesCannotDistinguish) {
  const auto explanations = explain(reference_side("cassava-resnet50"), Base::best);
  ASSERT_EQ(explanations.size(), 1U);
  ASSERT_EQ(explanations[0].series.size(), 1U);
  const SeriesExplanation& series = explanations[0].series[0];
  EXPECT_FALSE(series.amdahl || series.usl) << "of one run a row";
  const std::string text = explanation_text(explanations[0]);
  EXPECT_TRUE(
      holds(text,
            "the Karp-Flatt fraction is 0.165 to 0.181, as if each added replica cost 16 to "
            "18 % of a step; rows of fewer than 3 runs cannot show whether that is so"))
      << text;
  expect_parts(text, {"the cause may be a fixed time per run, serial work on the input, or ",
                      "; runs of one number of steps at every size would show which",
                      "no law is fitted, as rows of fewer than 3 runs do not show their noise"});
  expect_no_parts(text, {"stays below", "each added replica adds", "backend null"});
  expect_parts(text, {"the records have no phases of a step"});
}

TEST(Explain, CassavaMatchedIsTheRangeOverCpus) {
  expect_parts(all_text(reference_side("cassava-resnet50")),
               {"as if each added replica cost 16 to 20 % of a step",
                "Karp-Flatt 0.177 to 0.200 / 0.162 to 0.180 / 0.173 to 0.200"});
}

// Of a 1000-sample run on two ranks and on one: seconds by phase and rank.
struct RankSeconds {
  double input = 0, compute = 0, communication = 0, other = 0;
};

Json record_with(const std::vector<RankSeconds>& ranks, double outside_of_steps = 0) {
  const RankSeconds& first = ranks[0];
  const double step = first.input + first.compute + first.communication + first.other;
  Json record = sample_record(
      {.gpus = static_cast<int>(ranks.size()), .fit_seconds = step + outside_of_steps});
  record["phases"] = Json::array();
  for (const RankSeconds& rank : ranks) {
    record["phases"].push_back({{"input", rank.input},
                                {"forward", rank.compute / 4},
                                {"backward", rank.compute / 2},
                                {"update", rank.compute / 4},
                                {"communication", rank.communication},
                                {"other", rank.other},
                                {"step", step}});
  }
  return record;
}

PointExplanation explained(const Json& base, const Json& point) {
  static std::vector<Explanation> kept;  // points look into it
  kept = explain(canonical_content({base, point}), Base::matched);
  return kept.at(0).points.at(1);
}

const Json kIdealBase = record_with({{.compute = 10}});

double lost_to(const PointExplanation& point, const std::string& label) {
  for (const Loss& loss : point.losses) {
    if (loss.label == label) return loss.share.value();
  }
  ADD_FAILURE() << "no part " << label;
  return 0;
}

// The same runs in rounds, each longer or shorter by the factors.
std::vector<Json> repeated(const Json& run, const std::vector<double>& factors) {
  std::vector<Json> runs;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    Json json = run;
    json["repeat"] = json["round"] = i + 1;
    json["timing"]["fit_seconds"] = json["timing"]["fit_seconds"].get<double>() * factors[i];
    for (Json& rank : json["phases"]) {
      for (auto& phase : rank) phase = phase.get<double>() * factors[i];
    }
    runs.push_back(json);
  }
  return runs;
}

PointExplanation explained(const std::vector<Json>& bases, const std::vector<Json>& points) {
  static std::vector<Explanation> kept;
  std::vector<Json> all = bases;
  all.insert(all.end(), points.begin(), points.end());
  kept = explain(canonical_content(all), Base::matched);
  return kept.at(0).points.at(1);
}

const std::vector<double> kQuietSteps = {1, 1.01, 0.99}, kQuieterSteps = {1, 1.005, 1.002};

// By hand: T 10, i 1, o 0.5, c 2 and 1.5 (least 1.5), u 6.5 and 7: means 1, 0.5, 1.75, 6.75.
TEST(Explain, EfficienciesByHand) {
  const PointExplanation point =
      explained(kIdealBase, record_with({{1, 6.5, 2, 0.5}, {1, 7, 1.5, 0.5}}));
  ASSERT_TRUE(point.step);
  EXPECT_NEAR(point.step->input, 9.0 / 10, 1e-12);
  EXPECT_NEAR(point.step->launch, 8.5 / 9, 1e-12);
  EXPECT_NEAR(point.step->transfer, 7.0 / 8.5, 1e-12);
  EXPECT_NEAR(point.step->serialization, 1.0, 1e-12);
  EXPECT_NEAR(point.step->load_balance, 6.75 / 7, 1e-12);
  EXPECT_NEAR(point.step->product(), 0.675, 1e-12);
  EXPECT_NEAR(*point.computation_scaling, 10 / 13.5, 1e-12);
  EXPECT_NEAR(*point.product, 0.5, 1e-12);  // 10 s on one replica, 10 s on two
  EXPECT_NEAR(*point.residual, 0, 1e-12);
  EXPECT_NEAR(point.lost->value(), 0.5, 1e-12);
  EXPECT_NEAR(lost_to(point, "compute"), 3.5 / 20, 1e-12);
  EXPECT_NEAR(lost_to(point, "communication or straggler"), 3.5 / 20, 1e-12);
  EXPECT_TRUE(point.step->is_bound);
  EXPECT_EQ(point.label, "");  // of one run
  expect_parts(point.because, {"how much of it is noise is not known (fewer than 3 runs)"});
}

TEST(Explain, ComputationScalingFarAboveOneIsExplained) {
  const auto notes = [](double compute) {
    const StoreContent content =
        canonical_content({kIdealBase, record_with({{.compute = compute}, {.compute = compute}})});
    return join(explanation_section(explain(content, Base::matched).at(0)).notes, "\n");
  };
  expect_parts(notes(2.5), {"computation scaling above 1 (2 replicas: 2, and computing is "
                            "100 % of the step)"});
  expect_no_parts(notes(5), {"computation scaling above 1"});
  expect_no_parts(notes(7), {"computation scaling above 1"});
}

TEST(Explain, WhatIsOutsideOfStepsIsTheRest) {
  const PointExplanation point =
      explained(kIdealBase, record_with({{.compute = 5}, {.compute = 5}}, 1));
  EXPECT_NEAR(*point.product, 1, 1e-12);
  EXPECT_NEAR(*point.residual, 5.0 / 6 - 1, 1e-12);
}

TEST(Explain, EachLossHasItsLabel) {
  const auto label = [](const std::vector<RankSeconds>& ranks, double outside = 0) {
    return explained(repeated(kIdealBase, kQuietSteps),
                     repeated(record_with(ranks, outside), kQuieterSteps))
        .label;
  };
  EXPECT_EQ(label({{.input = 2, .compute = 5}, {.input = 2, .compute = 5}}), "input");
  EXPECT_EQ(label({{.compute = 5, .communication = 2}, {.compute = 5, .communication = 2}}),
            "communication or straggler");  // only totals are known
  EXPECT_EQ(label({{.compute = 5}, {.compute = 5}}, 2), "outside of steps");
  EXPECT_EQ(label({{.compute = 7}, {.compute = 4, .communication = 3}}), "straggler");
  EXPECT_EQ(label({{.compute = 5, .other = 2}, {.compute = 5, .other = 2}}), "launch");
  EXPECT_EQ(label({{.compute = 8}, {.compute = 8}}), "compute");
  EXPECT_EQ(label({{.compute = 5.05}, {.compute = 5.05}}), "");
}

// 5 s on one replica and 2.9 on two, but the runs differ by far more than that.
TEST(Explain, WhatIsNoiseHasNoLabel) {
  const PointExplanation point =
      explained(repeated(record_with({{.compute = 5}}), {1, 1.4, 0.8}),
                repeated(record_with({{.compute = 2.9}, {.compute = 2.9}}), {1.2, 0.9, 1}));
  EXPECT_EQ(point.label, "");
  EXPECT_EQ(point.by_means, "");
  EXPECT_TRUE(point.lost->is_known());
  EXPECT_FALSE(point.lost->is_above(0));
  expect_parts(point.because, {"which cannot be distinguished from noise"});
}

TEST(Explain, WhatTooFewRunsReportIsMarked) {
  const PointExplanation point =
      explained(kIdealBase, record_with({{.compute = 8}, {.compute = 8}}));
  EXPECT_EQ(point.label, "");
  EXPECT_EQ(point.by_means, "compute");
}

// Two parts that cost the same are both named.
TEST(Explain, PartsThatAreIndistinguishableAreBothNamed) {
  Json first = record_with({{.input = 2, .compute = 7.1}, {.input = 2, .compute = 7.1}});
  Json second = record_with({{.input = 2.2, .compute = 6.9}, {.input = 2.2, .compute = 6.9}});
  Json third = record_with({{.input = 2.1, .compute = 7.2}, {.input = 2.1, .compute = 7.2}});
  std::vector<Json> points = {first, second, third};
  for (std::size_t i = 0; i < points.size(); ++i) points[i]["repeat"] = points[i]["round"] = i + 1;
  EXPECT_EQ(explained(repeated(kIdealBase, kQuietSteps), points).label, "input or compute");
}

// Ranks that are late in turn: each waits 3 of 10 s in all, and only 1 s of these in every step.
TEST(Explain, LatenessInTurnIsNoCommunication) {
  const TemporaryFolder folder;
  const Store store(folder / "study");
  const Json one = record_with({{.compute = 10}});
  const Json two =
      record_with({{.compute = 7, .communication = 3}, {.compute = 7, .communication = 3}});
  std::string lines;
  for (int step = 0; step < 10; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      lines += fmt::format("{{\"rank\":{},\"step\":{},\"total\":1,\"communication\":{}}}\n", rank,
                           step, step % 2 == rank ? 0.1 : 0.5);
    }
  }
  const std::string samples = gzipped(lines);
  for (int repeat = 1; repeat <= 3; ++repeat) {
    Json base = one, point = two;
    base["round"] = point["round"] = repeat;
    store.write("gpus=1", repeat, base, "");
    store.write("gpus=2", repeat, point, samples);
  }
  const auto explanation = [&] { return explain(load_store(folder / "study"), Base::matched); };
  const auto all = explanation();
  const PointExplanation& point = all.at(0).points.at(1);
  EXPECT_FALSE(point.step->is_bound);
  EXPECT_NEAR(point.step->transfer, 0.9, 1e-9);
  EXPECT_NEAR(lost_to(point, "communication"), 0.1, 1e-9);
  EXPECT_NEAR(lost_to(point, "straggler"), 0.2, 1e-9);
  // Samples of another run are none, and then there are only bounds.
  std::ofstream(folder / "study/gpus=2/2.1.steps.gz") << samples << " ";
  const auto bounds = explanation();
  const PointExplanation& bound = bounds.at(0).points.at(1);
  EXPECT_TRUE(bound.step->is_bound);
  expect_parts(explanation_text(bounds.at(0)), {"≥"});
  EXPECT_NEAR(lost_to(bound, "communication or straggler"), 0.3, 1e-9);
}

TEST(Explain, TheStragglerIsNamed) {
  Json late = record_with({{.compute = 7}, {.compute = 4, .communication = 3}});
  late["straggler"] = {{"rank", 0},
                       {"host", "node7"},
                       {"phase", "forward"},
                       {"excess_seconds_per_step", 0.1},
                       {"share_of_step", 0.43}};
  std::vector<Json> runs = repeated(late, kQuieterSteps);
  const auto because = [&] { return explained(repeated(kIdealBase, kQuietSteps), runs).because; };
  expect_parts(because(), {"; rank 0 on node7 is late by 43 % of a step, mostly in forward"});
  runs[0]["straggler"]["host"] = "node8";
  runs[1]["straggler"]["rank"] = 1;
  expect_parts(because(),
               {fmt::format("; in {} of {} runs rank 0 is late by 43 % of a step, mostly",
                            runs.size() - 1, runs.size())});
  for (Json& run : runs) run.erase("straggler");
  expect_parts(because(), {"no one rank is late in most runs"});
}

TEST(Explain, APointWithoutABaseIsLabelledByItsStep) {
  const auto explanations =
      explain(canonical_content({record_with({{.input = 4, .compute = 6}})}), Base::matched);
  EXPECT_EQ(explanations[0].points[0].label, "input");
  expect_parts(explanations[0].points[0].because, {"step time: 60.0 % compute, 40.0 % input"});
}

Json switched(const Json& like, const char* parameter, const Json& value, double fit_seconds) {
  Json record = like;
  record["parameters"][parameter] = value;
  record["timing"]["fit_seconds"] = fit_seconds;
  record["throughput"]["samples_per_second"] = 120000 / fit_seconds;
  return record;
}

TEST(Explain, RunsWithoutACostReportWhatItIs) {
  Json two = sample_record({.gpus = 2, .fit_seconds = 6});
  two["parameters"]["input"] = "data";
  two["parameters"]["overlap"] = true;
  Json synthetic = switched(two, "input", "synthetic", 4);
  synthetic["parameters"]["weights"] = "none";
  Json one = sample_record({.fit_seconds = 10});
  one["parameters"]["input"] = "data";
  one["parameters"]["overlap"] = true;
  const std::vector<Json> points = {one,
                                    two,
                                    switched(two, "backend", "null", 5),
                                    synthetic,
                                    switched(two, "overlap", false, 7.5),
                                    switched(two, "update", false, 5.98)};
  std::vector<Json> runs;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const Json& run : repeated(points[i], i == 1 ? kQuietSteps : kQuieterSteps)) {
      runs.push_back(run);
    }
  }
  const std::string text = all_text(canonical_content(runs));
  expect_parts(text, {"without communication (backend null): 1.197 times as fast [1.",
                      ": it costs 16.5 % of the time [1",
                      "without input (input synthetic): 1.496 times as fast [1.",
                      "(overlap false): 0.798 times as fast [0.7",
                      ": it saves 20.2 % of the time [", ", no difference beyond the noise"});
  expect_no_parts(text, {"it costs 0."});
  const std::string once = all_text(canonical_content(points));
  expect_parts(once, {"1.200 times as fast; how much of it is noise is not known (fewer"});
  expect_no_parts(once, {"it costs"});
}

TEST(Explain, AGrowingCostIsSeen) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4, 8, 16}) {
    const double n = gpus;
    records.push_back(sample_record(
        {.gpus = gpus, .fit_seconds = 10 * (1 + 0.02 * (n - 1) + 0.02 * n * (n - 1)) / n}));
  }
  const std::string text = all_text(canonical_content(records));
  expect_parts(text, {"rows of fewer than 3 runs cannot show whether that is more than noise"});
  expect_no_parts(text, {"cannot exceed"});
  std::vector<Json> repeats;
  for (const Json& record : records) {
    for (Json& run : repeated(record, kQuietSteps)) repeats.push_back(run);
  }
  expect_parts(all_text(canonical_content(repeats)),
               {"more than in proportion to the replicas added",
                "by the fit of the USL the speed-up is highest at about 7 replicas"});
}

TEST(Explain, SlowerThanOneReplicaFollowsNoLaw) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4}) {
    for (Json& run :
         repeated(sample_record({.gpus = gpus, .fit_seconds = 10.0 * gpus}), kQuietSteps))
      records.push_back(run);
  }
  const std::string text = all_text(canonical_content(records));
  expect_parts(text, {"slower than one: no law of scaling applies"});
  expect_no_parts(text, {"cannot exceed", "Amdahl"});
}

TEST(Explain, SmallSharesKeepTheirDigits) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4, 8, 16, 32, 64}) {
    const double n = gpus;
    const Json run =
        sample_record({.gpus = gpus, .fit_seconds = 10 * (1 + 0.0002 * n * (n - 1)) / n});
    for (Json& each : repeated(run, kQuietSteps)) records.push_back(each);
  }
  expect_parts(all_text(canonical_content(records)), {"coherence 0.0002 ["});
}

// Twice the samples in the time of the base: half the efficiency, of which the steps lost nothing.
TEST(Explain, MoreSamplesToTheGoalAreAFactorOfTheirOwn) {
  std::vector<Json> records = {kIdealBase, record_with({{1, 6.5, 2, 0.5}, {1, 7, 1.5, 0.5}})};
  for (Json& record : records) {
    const int gpus = record["layout"]["gpus"];
    record["throughput"]["samples"] = 120000 * gpus;
    record["quality"]["until"] = {
        {"goal", "test_accuracy>=0.98"}, {"reached", true}, {"epochs", 2 * gpus}};
  }
  const auto explanations = explain(canonical_content(records), Base::matched);
  ASSERT_EQ(explanations.size(), 1U);
  const PointExplanation& point = explanations[0].points.at(1);
  EXPECT_NEAR(point.facts->speed_up->efficiency.value(), 0.5, 1e-9);
  EXPECT_NEAR(point.samples_to_goal.value_or(0), 0.5, 1e-9);
  EXPECT_NEAR(point.product.value_or(0), 0.5, 1e-9);
  EXPECT_NEAR(point.residual.value_or(1), 0, 1e-9);
  EXPECT_EQ(point.by_means, "samples");
  EXPECT_FALSE(explanations[0].series.at(0).amdahl || explanations[0].series.at(0).usl);
  expect_parts(explanation_text(explanations[0]),
               {"the goal took 2.00 times the samples of the base", "samples to goal",
                "time-to-goal scaling, to test_accuracy>=0.98"});
  expect_no_parts(all_text(canonical_content({kIdealBase})), {"samples to goal"});
}

std::vector<Json> with_speed_ups(const std::vector<std::pair<int, double>>& speed_ups) {
  std::vector<Json> records = {sample_record({.fit_seconds = 100})};
  for (const auto& [gpus, speed_up] : speed_ups) {
    records.push_back(sample_record({.gpus = gpus, .fit_seconds = 100 / speed_up}));
  }
  return records;
}

// At many replicas a small fraction is much: 0.018 of 64 halves the efficiency.
TEST(Explain, SmallFractionsOfManyReplicasAreATrend) {
  const std::string text =
      all_text(canonical_content(with_speed_ups({{16, 15}, {32, 25}, {64, 30}})));
  expect_parts(text, {"the Karp-Flatt fraction goes from 0.004 on 16 to 0.018 on 64"});
  expect_no_parts(text, {"steady"});
}

TEST(Explain, FasterThanLinearIsNoZeroShare) {
  std::vector<Json> records;
  for (const Json& run : with_speed_ups({{2, 2.2}, {4, 5.5}})) {
    for (Json& each : repeated(run, kQuietSteps)) records.push_back(each);
  }
  expect_parts(all_text(canonical_content(records)), {"more than N times as fast as one"});
}

// One CPU a replica is slower, and was not run on four replicas: that is no trend of replicas.
TEST(Explain, OtherCpusAreNoTrend) {
  std::vector<Json> records;
  for (const auto& [gpus, cpus, seconds] :
       {std::tuple(1, 1, 100.0), {1, 4, 100.0}, {2, 1, 65.0}, {2, 4, 55.0}, {4, 4, 32.5}}) {
    records.push_back(
        sample_record({.gpus = gpus, .cpus_per_replica = cpus, .fit_seconds = seconds}));
  }
  const std::string text = all_text(canonical_content(records));
  expect_no_parts(text, {"goes from"});
  expect_parts(text, {"(4 CPUs per replica): the Karp-Flatt fraction is 0.100"});
}

// Two sizes and one run each know no noise.
TEST(Explain, TwoSizesDenyNoCost) {
  const std::string text = all_text(canonical_content(with_speed_ups({{64, 40}, {128, 38}})));
  expect_parts(text, {"cannot show whether that is more than noise"});
  expect_no_parts(text, {"cannot exceed"});
}

// Speed-ups that make the fractions 0.19, 0.25, 0.19: up and down is neither steady nor a trend.
TEST(Explain, UpAndDownIsNoTrend) {
  std::vector<Json> records = repeated(sample_record({.fit_seconds = 10}), kQuietSteps);
  for (const auto& [gpus, fraction] : {std::pair(2, 0.19), {4, 0.25}, {8, 0.19}}) {
    for (const Json& run : repeated(
             sample_record({.gpus = gpus, .fit_seconds = 10 * (fraction + (1 - fraction) / gpus)}),
             kQuieterSteps)) {
      records.push_back(run);
    }
  }
  const std::string text = all_text(canonical_content(records));
  EXPECT_TRUE(
      holds(text, "the Karp-Flatt fraction changes at sizes between, but not from the smallest"))
      << text;
}

// Far from the others, a run is named, first of all.
TEST(Findings, RunsThatDifferWidelyAreNamedFirst) {
  std::vector<Json> records = repeated(sample_record({.fit_seconds = 2.45}), {1, 1.024, 2.078});
  for (const Json& run : repeated(sample_record({.gpus = 2, .fit_seconds = 1.3}), kQuietSteps)) {
    records.push_back(run);
  }
  const auto explanations = explain(canonical_content(records), Base::matched);
  const Explanation& it = explanations.at(0);
  const auto found = findings(it.study, it.comparison, it.facts);
  EXPECT_EQ(found.at(0).kind, FindingKind::runs_differ);
  EXPECT_EQ(found.at(0).text,
            "runs of 1 replica differ widely (2.45, 2.51, 5.09 s): was the machine busy?");
  for (Json& record : records) record["provenance"]["machine_load"]["busy"] = false;
  EXPECT_EQ(explain(canonical_content(records), Base::matched).at(0).unlike.at(0).text,
            "runs of 1 replica differ widely (2.45, 2.51, 5.09 s); the machine was busy in none of "
            "them");
  EXPECT_EQ(explanation_section(it).findings.at(0).text, found.at(0).text);
}

TEST(Explain, JsonHasTheSame) {
  const Document made = explanation_document(
      explain(canonical_content({kIdealBase, record_with({{1, 6.5, 2, 0.5}, {1, 7, 1.5, 0.5}})}),
              Base::matched));
  EXPECT_EQ(made.title, "Where the efficiency of quick went");
  EXPECT_TRUE(made.sections.at(0).plots.at(0).title.starts_with("Lost efficiency of quick: "));
  const Json document = Json::parse(to_json_text(made));
  const Json& point = document["explanations"][0]["points"][1];
  EXPECT_EQ(point["gpus"], 2);
  EXPECT_TRUE(point["label"].is_null());
  EXPECT_TRUE(point["transfer_is_bound"].get<bool>());
  EXPECT_NEAR(point["losses"]["compute"]["share"].get<double>(), 3.5 / 20, 1e-9);
  EXPECT_NEAR(point["efficiency"].get<double>(), 0.5, 1e-9);
  EXPECT_NEAR(point["product"].get<double>(), 0.5, 1e-9);
  EXPECT_NEAR(point["input"].get<double>(), 0.9, 1e-9);
  EXPECT_TRUE(document["explanations"][0]["points"][0]["product"].is_null());
  EXPECT_FALSE(document["explanations"][0]["series"][0].contains("amdahl_serial_share"));
}

}  // namespace
}  // namespace paceline

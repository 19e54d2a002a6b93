#include "analysis/study/study.h"

#include <gtest/gtest.h>

#include "analysis/study/comparison.h"
#include "analysis/study/labels.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

Study only_study(const std::vector<Json>& records, const std::vector<Selection>& only = {}) {
  auto studies = make_studies(canonical_content(records), only);
  EXPECT_EQ(studies.size(), 1U);
  return std::move(studies.at(0));
}

std::string study_refusal(const std::vector<Json>& records,
                          const std::vector<Selection>& only = {}) {
  try {
    make_studies(canonical_content(records), only);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

bool any_note(const Study& study, const std::string& text) {
  return join(study.notes, "\n").find(text) != std::string::npos;
}

TEST(Study, RunsOfAPointStandTogether) {
  const Study study = only_study(drifting_study());
  EXPECT_EQ(study.scaling, Scaling::fixed_epochs);
  ASSERT_EQ(study.rows.size(), 2U);
  EXPECT_EQ(study.rows[0].first()->layout.gpus, 1);
  EXPECT_EQ(study.rows[1].runs.size(), 3U);
  expect_parts(join(machine_notes(study), "\n"),
               {"a replica (column gpus) is a group of CPU cores"});
}

TEST(Study, SeedsAreRepeatsAndOtherParametersAreAxes) {
  std::vector<Json> records;
  for (int repeat = 1; repeat <= 2; ++repeat) {
    for (const double bucket : {4.0, 8.0}) {
      Json json = sample_record({.gpus = 2, .repeat = repeat});
      json["parameters"]["seed"] = repeat;
      json["parameters"]["bucket_mb"] = bucket;
      records.push_back(json);
    }
  }
  const Study study = only_study(records);
  ASSERT_EQ(study.rows.size(), 2U);
  EXPECT_EQ(study.rows[0].runs.size(), 2U);
  EXPECT_EQ(study.axes, std::vector<std::string>{"bucket_mb"});
}

TEST(Study, SizesThatOneSeriesLacksAreNamed) {
  std::vector<Json> records;
  for (const auto& [backend, gpus] :
       {std::pair("ring", 1), {"ring", 2}, {"ring", 4}, {"mirrored", 2}, {"mirrored", 4}}) {
    Json json = sample_record({.gpus = gpus});
    json["parameters"]["backend"] = backend;
    records.push_back(json);
  }
  const std::string notes = join(only_study(records).notes, "\n");
  EXPECT_NE(notes.find("others of their size were run: 1 replica (mirrored"), std::string::npos)
      << notes;
}

TEST(Study, TaintedRunsStayOut) {
  auto records = drifting_study();
  records[1]["flags"]["resumed"] = true;
  Json lone = sample_record({.gpus = 4});
  lone["flags"]["oversubscribed"] = true;
  records.push_back(lone);
  lone["flags"] = {{"traced", true}};
  records.push_back(lone);
  const Study study = only_study(records);
  ASSERT_EQ(study.rows.size(), 3U);
  EXPECT_EQ(row_label(study.rows[2]), "oversubscribed, traced");
  EXPECT_EQ(study.rows[1].runs.size(), 2U);
  EXPECT_EQ(study.rows[1].aside.size(), 1U);
  EXPECT_TRUE(study.rows[2].tainted);
  EXPECT_TRUE(any_note(study, "1 resumed, throttled, oversubscribed or traced run is left out"));
  EXPECT_FALSE(compare(study, Base::matched).speed_ups[2]->ratio.estimate.interval);
}

TEST(Study, ReportsWhatIsIgnoredUnlikeOrUnfinished) {
  auto records = drifting_study();
  records[3]["provenance"]["cpu_model"] = "Another CPU";
  records[3]["provenance"]["commit"] = "def";
  Json failed = sample_record({.gpus = 4});
  failed["status"] = "failed";
  failed["reason"] = "out of memory";
  records.push_back(failed);
  Json retried = sample_record();  // its repeat completed
  retried["status"] = "timeout";
  records.push_back(retried);
  StoreContent content = canonical_content(records);
  for (int i = 0; i < 7; ++i) content.rejected.push_back({"x", "cut short (x)"});
  const Study study = make_studies(content).at(0);
  EXPECT_EQ(study.warnings,
            std::vector<std::string>{"runs of two machines are mixed: A CPU (5 runs), Another CPU "
                                     "(1 run); no speed-up is given across them"});
  const std::string notes = join(study.notes, "\n");
  expect_parts(notes, {"several builds", "ended as failed: out of memory",
                       "ignored record: cut short (x)", "2 more records were ignored"});
  expect_no_parts(notes, {"timeout"});
}

TEST(Study, RunsOfUnlikeMachinesShareNoRowAndNoBase) {
  auto records = drifting_study();  // all of one replica on one machine, all of two on another
  for (Json& json : records) {
    const bool one = json["layout"]["gpus"] == 1;
    json["provenance"]["machine"] = {{"cpus", one ? 2 : 64}, {"memory_bytes", 8e9}};
  }
  const Study study = only_study(records);
  ASSERT_EQ(study.rows.size(), 2U);
  EXPECT_EQ(study.rows[0].first().system, "A CPU, 2 CPUs");
  const Comparison comparison = compare(study, Base::matched);
  for (std::size_t i = 0; i < 2; ++i) {
    const bool alone = study.rows[i].first()->layout.gpus == 2;
    EXPECT_EQ(comparison.speed_ups[i].has_value(), !alone);
  }
  EXPECT_FALSE(
      compare(study, Base::best).speed_ups[study.rows[0].first()->layout.gpus == 2 ? 0 : 1]);
  EXPECT_EQ(only_study(records, {{"system", {"A CPU, 64 CPUs"}}}).warnings.size(), 0U);

  // The same point on both machines is two rows.
  for (Json& json : records) json["provenance"]["machine"]["cpus"] = json["round"] == 1 ? 2 : 64;
  EXPECT_EQ(only_study(records).rows.size(), 4U);
  // A record that does not tell is taken for one of the first.
  for (Json& json : records) json["provenance"]["machine"]["cpus"] = 64;
  records[0]["provenance"].erase("machine");
  const Study one = only_study(records);
  EXPECT_EQ(one.rows.size(), 2U);
  EXPECT_TRUE(one.warnings.empty());
}

TEST(Study, RefusesRunsThatHoldNothingFixed) {
  auto records = drifting_study();
  records[5]["throughput"]["samples"] = 640;
  records[5]["parameters"]["epochs"] = 1;
  expect_parts(study_refusal(records), {"record 0 and record 5"});
}

TEST(Study, SelectionsNameWhatThereIs) {
  const auto records = drifting_study();
  EXPECT_EQ(only_study(records, {{"gpus", {"2"}}}).rows.size(), 1U);
  expect_parts(study_refusal(records, {{"gpu", {"2"}}}), {"did you mean \"gpus\""});
  expect_parts(study_refusal(records, {{"backend", {"nccl"}}}),
               {"--only: no record has backend \"nccl\"; known: mpi"});
  expect_parts(study_refusal({}), {"no finished run found"});
}

TEST(Study, WithoutACompletedRunAFailedOneIsNamed) {
  std::vector<Json> records(2, sample_record());
  for (Json& record : records) record["status"] = "failed";
  records[1]["reason"] = "./train: cannot be started; check the command";
  EXPECT_EQ(study_refusal(records),
            "record 1: none of 2 runs completed; this one ended as failed (./train: cannot be "
            "started; check the command); see its log, and run the study again");
  EXPECT_EQ(study_refusal({records[0]}),
            "record 0: the only run ended as failed; see its log, and run the study again");
}

ExpectedRuns plan_of_epochs(std::int64_t epochs) {
  ExpectedRuns plan{"quick", "mnist-cnn", 1, {}};
  for (const int gpus : {1, 2}) {
    plan.points.push_back(planned_point(gpus));
    plan.points.back().set("epochs", epochs);
  }
  return plan;
}

// A spec was edited, and only its first point is run anew: the rest is missing, not old.
TEST(Study, OnceASpecIsRunAnewOldRunsAreNone) {
  std::vector<Json> records = {sample_record(), sample_record({.gpus = 2})};
  const auto rows = [&] {
    const auto studies = make_studies(canonical_content(records), {}, {plan_of_epochs(4)});
    return std::pair(studies.at(0).rows.size(), studies.at(0).gaps.size());
  };
  EXPECT_EQ(rows().first, 2U) << "nothing of the new spec has run";
  records.push_back(sample_record());
  records.back()["parameters"]["epochs"] = 4;
  records.back()["throughput"]["samples"] = 240000;
  EXPECT_EQ(rows(), (std::pair<std::size_t, std::size_t>(1, 1)));
}

TEST(Study, RunsThatAllFailedHideNoOlderResults) {
  std::vector<Json> records = {sample_record(), sample_record({.gpus = 2})};
  records.push_back(sample_record());
  records.back()["parameters"]["epochs"] = 4;
  records.back()["status"] = "failed";
  const auto studies = make_studies(canonical_content(records), {}, {plan_of_epochs(4)});
  EXPECT_EQ(studies.at(0).rows.size(), 2U);
}

TEST(Study, ARunThatANewBuildMadeAgainCountsOnce) {
  auto records = drifting_study();
  Json again = records[0];
  again["attempt"] = 2;
  again["provenance"]["commit"] = "0123456";
  again["session"] = "later";
  records.push_back(again);
  const Study study = only_study(records);
  EXPECT_EQ(study.rows[0].runs.size(), 3U);
  EXPECT_TRUE(any_note(study, "left out: 1 run of earlier builds"));
  const auto all = make_studies(canonical_content(records), {}, {}, Pooling::by_sessions,
                                EvidencePolicy::history());
  EXPECT_EQ(all.at(0).rows[0].runs.size(), 4U);
  records.back()["provenance"]["commit"] = records[0]["provenance"]["commit"];
  EXPECT_EQ(only_study(records).rows[0].runs.size(), 4U) << "it is the same build";
}

// The record of a run that left none has only what its spec gives.
TEST(Study, ARunThatWasRunAgainIsNotReported) {
  auto records = drifting_study();
  Json lost = records[0];
  lost["status"] = "timeout";
  lost["reason"] = "after 5 min";
  lost["parameters"] = {
      {"workload", "mnist-cnn"}, {"gpus", 1}, {"cpus_per_task", 1}, {"backend", "mpi"}};
  records.push_back(lost);
  EXPECT_FALSE(any_note(only_study(records), "after 5 min"));
}

TEST(Study, NullsAreNoValues) {
  auto records = drifting_study();
  for (Json& json : records) {
    json["quality"]["until"] = {{"goal", "test_accuracy>=0.9"}, {"reached", nullptr}};
  }
  EXPECT_FALSE(only_study(records).rows[0].first().goal_reached);
}

TEST(Comparison, RunsOfARoundArePaired) {
  const Study study = only_study(drifting_study());
  const Comparison comparison = compare(study, Base::matched);
  const Ratio& ratio = comparison.speed_ups[1]->ratio;
  EXPECT_EQ(ratio.kind, RatioKind::paired);
  EXPECT_NEAR(ratio.estimate.value, 1.8, 1e-3);
  // Half width: t(2) = 4.3027 times the standard error of 0, log 1.01, log 0.99.
  EXPECT_NEAR(ratio.estimate.interval->high / ratio.estimate.value, std::exp(4.3027 * 0.0057737),
              1e-4);
}

TEST(Comparison, RunsOfUnlikeRoundsAreNot) {
  auto records = drifting_study();
  for (std::size_t i = 1; i < records.size(); i += 2) {
    records[i]["round"] = records[i]["round"].get<int>() + 10;
  }
  const Comparison comparison = compare(only_study(records), Base::matched);
  EXPECT_EQ(comparison.speed_ups[1]->ratio.kind, RatioKind::welch);
  EXPECT_GT(comparison.speed_ups[1]->ratio.estimate.interval->high, 2.5);  // the drift is in it
}

TEST(Comparison, MatchedWantsTheSameBackendAndCpus) {
  std::vector<Json> records = {
      sample_record({.gpus = 1, .cpus_per_replica = 1, .fit_seconds = 20}),
      sample_record({.gpus = 1, .cpus_per_replica = 2, .fit_seconds = 12}),
      sample_record({.gpus = 2, .cpus_per_replica = 1, .fit_seconds = 10}),
      sample_record({.gpus = 2, .cpus_per_replica = 4, .fit_seconds = 4}),
      sample_record({.gpus = 2, .cpus_per_replica = 1, .fit_seconds = 16, .backend = "mirrored"}),
  };
  Study study = only_study(records);
  Comparison comparison = compare(study, Base::matched);
  ASSERT_EQ(study.rows[0].first().backend, "mirrored");
  EXPECT_FALSE(comparison.speed_ups[0]);
  EXPECT_DOUBLE_EQ(comparison.speed_ups[3]->ratio.estimate.value, 2);
  EXPECT_FALSE(comparison.speed_ups[4]);
  ASSERT_EQ(comparison.notes.size(), 2U);
  expect_parts(comparison.notes[0], {"CPUs per replica 4"});
  expect_parts(comparison.notes[1], {"with backend mirrored;"});

  records.push_back(sample_record({.fit_seconds = 24, .backend = "self"}));
  study = only_study(records);
  comparison = compare(study, Base::matched);
  EXPECT_DOUBLE_EQ(comparison.speed_ups[0]->ratio.estimate.value, 1.5);
  expect_parts(comparison.notes.back(),
               {"no run of one replica by mirrored: the base is that of backend self"});

  comparison = compare(study, Base::best);
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    EXPECT_NEAR(comparison.speed_ups[i]->ratio.estimate.value,
                12 / *study.rows[i].first().fit_seconds(), 1e-12);
  }
}

TEST(Comparison, WeakScalingComparesRates) {
  std::vector<Json> records = {sample_record(), sample_record({.gpus = 2, .fit_seconds = 12})};
  records[1]["throughput"] = {{"samples", 240000}, {"steps", 1876}, {"samples_per_second", 20000}};
  const Study study = only_study(records);
  EXPECT_EQ(study.scaling, Scaling::weak);
  const Comparison comparison = compare(study, Base::matched);
  EXPECT_TRUE(comparison.rates);
  EXPECT_NEAR(comparison.speed_ups[1]->ratio.estimate.value, 20000 / 12000.0, 1e-9);
  EXPECT_FALSE(comparison.speed_ups[1]->karp_flatt);
}

Json to_a_goal(Json json, bool reached) {
  json["quality"]["until"] = {{"goal", "test_accuracy>=0.98"}, {"reached", reached}, {"epochs", 2}};
  return json;
}

// A run that gave up is no fast one.
TEST(Comparison, RunsThatDidNotReachTheirGoalHaveNoSpeedUp) {
  const Study study = only_study({to_a_goal(sample_record(), true),
                                  to_a_goal(sample_record({.gpus = 2, .fit_seconds = 6}), true),
                                  to_a_goal(sample_record({.gpus = 4, .fit_seconds = 1}), false)});
  const Comparison comparison = compare(study, Base::matched);
  ASSERT_TRUE(comparison.speed_ups[1]);
  EXPECT_FALSE(comparison.speed_ups[1]->karp_flatt) << "the work is not the same";
  EXPECT_FALSE(comparison.speed_ups[2]);
  EXPECT_FALSE(comparison.best_of_size[2]);
}

// Several runs of a round, as of several seeds, are one pair.
TEST(Comparison, SeveralRunsOfARoundAreOnePair) {
  std::vector<Json> records;
  for (int seed = 1; seed <= 2; ++seed) {
    for (Json json : drifting_study()) {
      json["parameters"]["seed"] = seed;
      records.push_back(json);
    }
  }
  const Comparison comparison = compare(only_study(records), Base::matched);
  EXPECT_EQ(comparison.speed_ups[1]->ratio.kind, RatioKind::paired);
  EXPECT_EQ(comparison.speed_ups[1]->ratio.estimate.count, 3U);
}

TEST(Comparison, TwoSharedRoundsOfManyAreTooFew) {
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    records.push_back(sample_record({.repeat = round}));
    if (round > 2) continue;
    records.push_back(sample_record({.gpus = 2, .repeat = round, .fit_seconds = 6}));
  }
  EXPECT_EQ(compare(only_study(records), Base::matched).speed_ups[1]->ratio.kind, RatioKind::welch);
}

TEST(Comparison, KarpFlattOfAmdahlIsTheSerialShare) {
  const double serial = 0.17;
  for (const double p : {2.0, 3.0, 64.0}) {
    EXPECT_NEAR(karp_flatt(1 / (serial + (1 - serial) / p), p), serial, 1e-12);
  }
}

TEST(Comparison, KarpFlattHasTheIntervalOfTheSpeedUp) {
  const Comparison comparison = compare(only_study(drifting_study()), Base::matched);
  const SpeedUp& speed_up = *comparison.speed_ups[1];
  ASSERT_TRUE(speed_up.ratio.estimate.interval && speed_up.karp_flatt->interval);
  const Interval &of_speed_up = *speed_up.ratio.estimate.interval,
                 &of_fraction = *speed_up.karp_flatt->interval;
  EXPECT_NEAR(speed_up.karp_flatt->value, 2 / speed_up.ratio.estimate.value - 1, 1e-12);
  EXPECT_NEAR(of_fraction.low, 2 / of_speed_up.high - 1, 1e-12);
  EXPECT_NEAR(of_fraction.high, 2 / of_speed_up.low - 1, 1e-12);
}

TEST(Study, AMixtureNamesAChoiceThatIsThere) {
  std::vector<Json> records = {sample_record(), sample_record({.gpus = 2}), sample_record()};
  records[2]["parameters"]["batch_per_replica"] = 128;
  expect_parts(study_refusal(records), {"--only batch_per_replica=64"});
  EXPECT_EQ(study_refusal(records, {{"batch_per_replica", {"64"}}}), "accepted");
}

TEST(Study, AxesAreInTheOrderOfTheirNumbers) {
  std::vector<Json> records;
  for (const double bucket : {16.0, 4.0, 128.0}) {
    records.push_back(sample_record({.gpus = 2}));
    records.back()["parameters"]["bucket_mb"] = bucket;
  }
  std::vector<double> order;
  for (const Row& row : only_study(records).rows) {
    order.push_back(row.first()->parameters.real("bucket_mb").value_or(0));
  }
  EXPECT_EQ(order, (std::vector<double>{4, 16, 128}));
}

}  // namespace
}  // namespace paceline

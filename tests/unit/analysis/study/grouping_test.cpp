#include "analysis/study/grouping.h"

#include <gtest/gtest.h>

#include "analysis/study/labels.h"
#include "analysis/study/study.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

struct RowShape {
  int gpus, batch;
  int epochs = 2;
};

constexpr double kSamples = 60000;  // an epoch

Json make_record(const RowShape& shape, const std::string& varied) {
  Json json = sample_record({.gpus = shape.gpus});
  json["parameters"]["batch_per_replica"] = shape.batch;
  json["parameters"]["epochs"] = shape.epochs;
  json["throughput"]["samples"] = kSamples * shape.epochs;
  json["throughput"]["steps"] = kSamples * shape.epochs / shape.batch / shape.gpus;
  if (!varied.empty()) {
    json["point"] =
        json["point"].get<std::string>() + "," + varied + "=" + json["parameters"][varied].dump();
  }
  return json;
}

std::vector<Json> load_records(const std::vector<RowShape>& shapes,
                               const std::string& varied = "") {
  std::vector<Json> records;
  for (const RowShape& shape : shapes) records.push_back(make_record(shape, varied));
  return records;
}

// "batch_per_replica 64 fixed-epochs: 1 2; ..." in the order of the tables, with the sizes.
std::string make_tables(const std::vector<Study>& studies) {
  std::vector<std::string> tables;
  for (const Study& study : studies) {
    std::string text;
    for (const auto& [name, value] : study.work) text += name + " " + to_text(value) + " ";
    text += std::string(to_string(study.scaling)) + ":";
    for (const Row& row : study.rows) text += " " + std::to_string(row.first()->layout.gpus);
    tables.push_back(text);
  }
  return join(tables, "; ");
}

std::string make_tables(const std::vector<Json>& records) {
  return make_tables(make_studies(canonical_content(records)));
}

TEST(Grouping, EachBatchHasATableOfItsOwn) {
  EXPECT_EQ(make_tables(load_records({{1, 128}, {1, 64}, {2, 64}, {2, 128}})),
            "batch_per_replica 64 fixed-epochs: 1 2; batch_per_replica 128 fixed-epochs: 1 2");
  EXPECT_EQ(make_tables(load_records({{1, 64}, {2, 64}}, "batch_per_replica")),
            "fixed-epochs: 1 2");
}

TEST(Grouping, SoHasEachGlobalBatchOfStrongScaling) {
  EXPECT_EQ(make_tables(load_records({{1, 64}, {2, 32}, {1, 128}, {2, 64}})),
            "global_batch 64 strong: 1 2; global_batch 128 strong: 1 2");
}

TEST(Grouping, SoHasEachNumberOfEpochs) {
  EXPECT_EQ(make_tables(load_records({{1, 64, 1}, {2, 64, 1}, {1, 64, 8}, {2, 64, 8}})),
            "epochs 1 fixed-epochs: 1 2; epochs 8 fixed-epochs: 1 2");
}

TEST(Grouping, SoHasEachGoal) {
  auto records = load_records({{1, 64, 2}, {2, 64, 3}, {1, 64, 5}, {2, 64, 8}});
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string share = i < 2 ? "0.9" : "0.98";
    records[i]["parameters"]["epochs"] = 10;
    records[i]["parameters"]["until"] = "test_accuracy=" + share;
    records[i]["quality"]["until"] = {{"goal", "test_accuracy>=" + share}, {"reached", true}};
  }
  const auto studies = make_studies(canonical_content(records));
  ASSERT_EQ(studies.size(), 2U);
  EXPECT_EQ(study_title(studies[0]),
            "mnist-cnn, fp32, time-to-goal scaling, until test_accuracy=0.9");
  records.resize(2);
  EXPECT_EQ(study_title(make_studies(canonical_content(records)).at(0)),
            "mnist-cnn, fp32, time-to-goal scaling, to test_accuracy>=0.9");
}

// Where runs are missing, what is left may look like anything; the sweep says what it varied.
TEST(Grouping, TheSweepReportsWhatSetsTablesApart) {
  const std::vector<RowShape> shapes = {{1, 64}, {2, 64}, {1, 512}};
  EXPECT_EQ(make_tables(load_records(shapes, "batch_per_replica")),
            "batch_per_replica 64 fixed-epochs: 1 2; batch_per_replica 512 one size: 1");
  EXPECT_THROW(make_tables(load_records(shapes)), Error);
}

TEST(Grouping, BothBatchAndEpochsMaySetApart) {
  auto records = load_records({{1, 64, 1}, {2, 64, 1}, {1, 128, 1}, {2, 128, 1}}, "epochs");
  for (const Json& json : load_records({{1, 64, 8}, {2, 64, 8}, {1, 128, 8}, {2, 128, 8}})) {
    records.push_back(json);
  }
  for (Json& json : records) json["point"] = "gpus=1,batch_per_replica=64,epochs=1";
  const auto studies = make_studies(canonical_content(records));
  ASSERT_EQ(studies.size(), 4U);
  EXPECT_EQ(study_title(studies[1]),
            "mnist-cnn, fp32, fixed-epochs scaling, batch_per_replica 64, epochs 8");
}

TEST(Grouping, SoHaveWorkloadsPrecisionsAndTypes) {
  auto records = load_records({{1, 64}, {2, 64}});
  for (Json& json : load_records({{1, 64}, {2, 64}})) {
    json["parameters"]["precision"] = "bf16";
    records.push_back(json);
  }
  for (Json& json : load_records({{1, 64}, {2, 32}})) {
    json["parameters"]["workload"] = "mnist-mlp";
    records.push_back(json);
  }
  EXPECT_EQ(make_tables(records), "fixed-epochs: 1 2; fixed-epochs: 1 2; strong: 1 2");
}

Json published(const RowShape& shape) {
  Json json = make_record(shape, "");
  json["kind"] = "published";
  json["provenance"]["stack"] = "Horovod";
  return json;
}

// A published row stands beside the measured ones of its batch.
TEST(Grouping, ASystemOfOneBatchJoinsItsTable) {
  auto records = load_records({{1, 64}, {2, 64}, {1, 128}, {2, 128}});
  records.push_back(published({1, 128}));
  records.push_back(published({2, 128}));
  EXPECT_EQ(make_tables(records),
            "batch_per_replica 64 fixed-epochs: 1 2; batch_per_replica 128 fixed-epochs: 1 2 1 2");
  records.pop_back();  // one size joins as well
  EXPECT_EQ(make_tables(records),
            "batch_per_replica 64 fixed-epochs: 1 2; batch_per_replica 128 fixed-epochs: 1 2 1");
  records.push_back(published({2, 64}));  // strong: of both batches, and so of none
  EXPECT_EQ(make_tables(records),
            "strong: 1 2; batch_per_replica 64 fixed-epochs: 1 2; batch_per_replica 128 "
            "fixed-epochs: 1 2");
}

// Of no sweep that says what it varied: a study of fixed epochs beside one whose work grows.
TEST(Grouping, StudiesThatNothingElseSetsApartStandAlone) {
  auto records = load_records({{1, 64, 1}, {2, 64, 1}, {1, 64, 1}, {2, 64, 2}});
  for (std::size_t i = 2; i < 4; ++i) records[i]["study"] = "weak";
  const auto studies = make_studies(canonical_content(records));
  ASSERT_EQ(studies.size(), 2U);
  EXPECT_EQ(study_title(studies[0]), "mnist-cnn, fp32, fixed-epochs scaling, study quick");
  EXPECT_EQ(study_title(studies[1]), "mnist-cnn, fp32, weak scaling, study weak");
}

// They are in no table together, on whatever machine, until another study joins them.
TEST(Grouping, StudiesWithoutACommonPointAreNeverCompared) {
  auto records = load_records({{1, 64}, {2, 64}, {4, 64}, {8, 64}});
  for (std::size_t i = 2; i < 4; ++i) {
    records[i]["study"] = "large";
    records[i]["provenance"]["cpu_model"] = "Another CPU";
  }
  const std::string apart = "study large fixed-epochs: 4 8; study quick fixed-epochs: 1 2";
  EXPECT_EQ(make_tables(records), apart);
  EXPECT_EQ(make_tables(make_studies(canonical_content(records), {}, {}, Pooling::always)),
            "fixed-epochs: 1 2 4 8");
  for (const int gpus : {2, 4}) {
    records.push_back(make_record({gpus, 64}, ""));
    records.back()["study"] = "link";
    records.back()["session"] = "s2";
  }
  EXPECT_EQ(make_studies(canonical_content(records)).size(), 1U);
  for (std::size_t i = 0; i < 2; ++i) records[i]["parameters"]["learning_rate"] = 0.5;
  EXPECT_EQ(make_tables(records),
            "studies large, link fixed-epochs: 2 4 4 8; study quick fixed-epochs: 1 2");
}

TEST(Grouping, ATrialRunBesideASweepIsATableMore) {
  auto records = load_records({{1, 64}, {2, 64}, {1, 128}, {2, 128}}, "batch_per_replica");
  records.push_back(make_record({1, 32, 1}, ""));
  EXPECT_EQ(make_tables(records),
            "batch_per_replica 64 fixed-epochs: 1 2; batch_per_replica 128 fixed-epochs: 1 2; "
            "batch_per_replica 32 one size: 1");
}

TEST(Grouping, BatchAndEpochsThatGoTogetherAreNoAmbiguity) {
  EXPECT_EQ(make_tables(load_records({{1, 64, 1}, {2, 64, 1}, {1, 128, 8}, {2, 128, 8}})),
            "batch_per_replica 64 fixed-epochs: 1 2; batch_per_replica 128 fixed-epochs: 1 2");
}

// What does other work, has no goal, or has no times joins no table of those that do.
TEST(Grouping, UnlikeRunsOfOneSizeStayApart) {
  const std::string own = "fixed-epochs: 1 2; one size: 1";
  auto records = load_records({{1, 64}, {2, 64}});
  records.push_back(published({1, 64, 90}));
  EXPECT_EQ(make_tables(records), own) << "45 times the samples";
  records.back() = published({1, 64});
  EXPECT_EQ(make_tables(records), "fixed-epochs: 1 2 1");
  records.back()["timing"].erase("fit_seconds");
  EXPECT_EQ(make_tables(records), own) << "only a rate";
  records.back() = published({1, 64});
  for (std::size_t i = 0; i < 2; ++i) {
    records[i]["quality"]["until"] = {{"goal", "test_accuracy>=0.9"}, {"reached", true}};
  }
  EXPECT_EQ(make_tables(records), "time-to-goal: 1 2; one size: 1") << "no goal";
}

TEST(Grouping, CoresAndGpusHaveTablesOfTheirOwn) {
  auto records = load_records({{1, 64}, {2, 64}, {1, 64}, {2, 64}});
  for (std::size_t i = 2; i < 4; ++i) {
    records[i]["parameters"]["device"] = "cuda";
    records[i]["layout"]["replicas_are"] = "gpus";
  }
  EXPECT_EQ(make_tables(records), "fixed-epochs: 1 2; fixed-epochs: 1 2");
}

std::string read_notes(const Study& study) {
  return join(study.notes, "\n");
}

TEST(Grouping, FailedAndPlannedPointsStandInTheirTable) {
  auto records = load_records({{1, 64}, {2, 64}, {1, 128}, {2, 128}}, "batch_per_replica");
  for (const RowShape& shape : std::vector<RowShape>{{4, 128}, {1, 512}}) {
    Json failed = make_record(shape, "batch_per_replica");
    failed["status"] = "failed";
    failed["reason"] = "out of memory at " + std::to_string(shape.batch);
    records.push_back(failed);
  }
  ExpectedRuns plan{"quick", "mnist-cnn", 1, {}};
  for (const auto& [gpus, batch] : {std::pair(8, 64), std::pair(2, 512)}) {
    plan.points.push_back(planned_point(gpus));
    plan.points.back().set("batch_per_replica", std::int64_t{batch});
  }
  const auto studies = make_studies(canonical_content(records), {}, {plan});
  ASSERT_EQ(studies.size(), 2U);
  ASSERT_EQ(studies[0].gaps.size(), 1U);
  EXPECT_EQ(studies[0].gaps[0].first()->layout.gpus, 8);
  ASSERT_EQ(studies[1].gaps.size(), 1U);
  EXPECT_EQ(studies[1].gaps[0].gap, "failed");
  expect_parts(read_notes(studies[1]), {"out of memory at 128"});
  expect_no_parts(read_notes(studies[0]), {"out of memory at 128"});
  // Without a table they are told once, with the first.
  for (const char* reported : {"out of memory at 512",
                               "1 planned point is without a table, as no such run completed: "
                               "mnist-cnn, batch_per_replica 512"}) {
    expect_parts(read_notes(studies[0]), {reported});
    expect_no_parts(read_notes(studies[1]), {reported});
  }
}

// What a study planned, or failed at, is no gap of published pages or of another study.
TEST(Grouping, GapsStandWhereTheirStudyHasRuns) {
  auto records = load_records({{1, 64}, {2, 64}});
  for (const RowShape& shape : std::vector<RowShape>{{1, 64}, {2, 32}}) {
    records.push_back(published(shape));  // strong: a table of its own
  }
  Json failed = make_record({4, 64}, "");
  failed["status"] = "failed";
  records.push_back(failed);
  const auto studies = make_studies(canonical_content(records));
  ASSERT_EQ(studies.size(), 2U);
  EXPECT_EQ(make_tables(studies), "strong: 1 2; fixed-epochs: 1 2");
  EXPECT_TRUE(studies[0].gaps.empty());
  ASSERT_EQ(studies[1].gaps.size(), 1U);
  EXPECT_EQ(studies[1].gaps[0].first()->layout.gpus, 4);
}

// Four replicas that accumulate two batches of 64 have a global batch of 512, and no batch of 128.
TEST(Grouping, AccumulatedBatchesCount) {
  auto records = load_records({{1, 64}, {2, 64}, {1, 128}, {2, 128}}, "batch_per_replica");
  Json failed = make_record({4, 64}, "batch_per_replica");
  failed["status"] = "failed";
  failed["parameters"].erase("batch_per_replica");
  failed["parameters"]["global_batch"] = 512;
  failed["parameters"]["gradient_accumulation_steps"] = 2;
  records.push_back(failed);
  const auto studies = make_studies(canonical_content(records));
  ASSERT_EQ(studies.size(), 2U);
  EXPECT_EQ(studies[0].gaps.size(), 1U);
  EXPECT_TRUE(studies[1].gaps.empty());
}

TEST(Grouping, AllThatIsLeftOutIsListed) {
  auto records = load_records({{1, 64}, {2, 64}});
  for (int i = 0; i < 7; ++i) {
    Json failed = make_record({4, 64}, "");
    failed["status"] = "failed";
    failed["reason"] = "out of memory";
    failed["repeat"] = i + 1;
    records.push_back(failed);
  }
  StoreContent content = canonical_content(records);
  for (int i = 0; i < 7; ++i) content.rejected.push_back({"x", "cut short (x)"});
  const Study study = make_studies(content).at(0);
  EXPECT_EQ(study.left_out.size(), 14U);
  EXPECT_EQ(study.left_out.back(), "a run that ended as failed: out of memory (record 8)");
  expect_parts(read_notes(study),
               {"7 runs that ended as failed: out of memory (record 2 and 6 more)",
                "2 more records were ignored"});
}

// One replica on one machine and two on another are no study of one size.
TEST(Grouping, MachinesOfOneSizeEachAreJudgedTogether) {
  Json one = make_record({1, 64}, ""), two = make_record({2, 64}, "");
  one["provenance"]["cpu_model"] = "A";
  two["provenance"]["cpu_model"] = "B";
  EXPECT_EQ(make_tables({one, two}), "fixed-epochs: 1 2");
  two = make_record({2, 64, 5}, "");
  two["provenance"]["cpu_model"] = "B";
  EXPECT_EQ(make_tables({one, two}), "gpus 1 one size: 1; gpus 2 one size: 2");
}

}  // namespace
}  // namespace paceline

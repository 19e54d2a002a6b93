// A setting as the base: studies that tune something else than the number of replicas.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/plots/study_plots.h"
#include "analysis/report.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {

PlotMaker settings_plots, speed_up_plots, efficiency_plots;

namespace {

// Four rounds of each bucket size; 4 MiB take 2 s, the others more.
std::vector<Json> tuned(const std::vector<int>& sizes, const char* parameter = "bucket_mb") {
  const double drift[] = {1, 1.2, 0.9, 1.1};
  const double noise[] = {1.004, 0.996, 1.001, 0.999};
  std::vector<Json> records;
  for (const int gpus : sizes) {
    for (const int bucket : {1, 4, 16}) {
      for (int round = 1; round <= 4; ++round) {
        const double alike = (bucket == 4 ? 2.0 : 2.5) * drift[round - 1] / gpus;
        const double seconds = bucket == 1 ? alike : alike * noise[(round + bucket) % 4];
        Json run = sample_record({.gpus = gpus, .repeat = round, .fit_seconds = seconds});
        run["parameters"][parameter] = bucket;
        records.push_back(run);
      }
    }
  }
  return records;
}

struct MadeRow : Compared {
  const Section section = Compared::section();

  using Compared::Compared;

  Cell cell(std::size_t row, const std::string& key) const {
    return testing::cell(section, row, key);
  }
};

TEST(SettingAsBase, RatiosAreToTheRowOfThatValue) {
  const MadeRow made(tuned({2}), Base("bucket_mb", "16"));
  ASSERT_EQ(made.study.rows.size(), 3U);
  EXPECT_EQ(made.section.facts->at("base"), "bucket_mb=16");
  EXPECT_EQ(made.cell(0, "bucket_mb").text, "16") << "the base is first";
  EXPECT_EQ(*made.cell(0, "speed_up").value, 1);
  EXPECT_NEAR(*made.cell(2, "speed_up").value, 1.25, 1e-9);
  ASSERT_TRUE(made.cell(2, "speed_up").interval);
  EXPECT_LT(made.cell(2, "speed_up").interval->high, 1.3) << "drift of rounds must not count";
  EXPECT_FALSE(made.cell(2, "efficiency").value) << "replicas are the same";
  EXPECT_FALSE(made.cell(2, "karp_flatt").value);
  expect_parts(notes_text(made.section), {"base bucket_mb=16: the row of this value"});
}

TEST(SettingAsBase, IsNamedWhereNoRowHasABase) {
  const auto notes = [](const std::vector<Json>& records) {
    return join(MadeRow(records, Base::matched).section.notes, "\n");
  };
  expect_parts(notes(tuned({2})), {"there is none; use --base bucket_mb=1"});
  expect_no_parts(notes(tuned({1, 2})), {"; use --base "});
  const std::string lone = notes({sample_record({.gpus = 2})});
  expect_parts(lone, {"there is none"});
  expect_no_parts(lone, {"; use --base "});
}

TEST(SettingAsBase, EachSizeHasItsOwn) {
  const MadeRow made(tuned({1, 2}), Base("bucket_mb", "1"));
  ASSERT_EQ(made.study.rows.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    const paceline::Run& run = made.study.rows[i].first();
    EXPECT_EQ(made.study.rows[made.comparison.speed_ups[i]->base].first()->layout.gpus,
              run->layout.gpus);
    EXPECT_NEAR(*made.cell(i, "speed_up").value, made.cell(i, "bucket_mb").text == "4" ? 1.25 : 1,
                1e-3);
  }
  EXPECT_TRUE(make_scaling_series(made.study, made.comparison, made.facts, false).empty());
}

TEST(BorrowedBase, LinesBeginAtTheRunWithoutABackend) {
  std::vector<Json> records = {sample_record({.gpus = 1, .fit_seconds = 12, .backend = "self"})};
  for (const char* backend : {"mpi", "gloo"}) {
    records.push_back(sample_record({.gpus = 2, .fit_seconds = 8, .backend = backend}));
  }
  const MadeRow made(records, Base::matched);
  const auto all_series = make_scaling_series(made.study, made.comparison, made.facts, true);
  ASSERT_EQ(all_series.size(), 2U);
  for (const ScalingSeries& series : all_series) {
    ASSERT_EQ(series.groups.size(), 2U) << series.name;
    EXPECT_EQ(series.groups[0].gpus, 1);
    EXPECT_EQ(series.groups[0].rows.at(0)->run().backend, "self");
    EXPECT_DOUBLE_EQ(series.groups[0].rows[0]->speed_up->ratio.estimate.value, 1);
    EXPECT_DOUBLE_EQ(series.groups[1].rows.at(0)->speed_up->ratio.estimate.value, 1.5);
  }
  EXPECT_EQ(all_series[0].name, "gloo");
  expect_parts(notes_text(made.section),
               {"one replica without a backend, same CPUs per replica: 12 s"});
  records.push_back(sample_record({.gpus = 1, .fit_seconds = 12, .backend = "mpi"}));
  const MadeRow both(records, Base::matched);
  expect_parts(notes_text(both.section), {"of the same backend or of none"});
}

// Where one GPU is too small, two may be what others are measured against.
TEST(SettingAsBase, ANumberOfReplicasGivesEfficiencies) {
  std::vector<Json> records;
  for (const int gpus : {2, 4, 8}) {
    records.push_back(sample_record({.gpus = gpus, .fit_seconds = gpus == 8 ? 4.0 : 20.0 / gpus}));
  }
  const MadeRow made(records, Base("gpus", "2"));
  EXPECT_NEAR(*made.cell(1, "speed_up").value, 2, 1e-9);
  EXPECT_NEAR(*made.cell(1, "efficiency").value, 1, 1e-9);
  EXPECT_NEAR(*made.cell(2, "efficiency").value, 2.5 * 2 / 8, 1e-9);
  EXPECT_NEAR(*made.cell(2, "karp_flatt").value, (1 / 2.5 - 1.0 / 4) / (1 - 1.0 / 4), 1e-9);
}

TEST(BestBase, RowsOfOneSizeOnSeveralNodesAreOneLine) {
  std::vector<Json> records;
  for (const auto& [gpus, nodes, seconds] : {std::tuple{1, 1, 12.0}, {2, 1, 8.0}, {2, 2, 7.0}}) {
    Json run = sample_record({.gpus = gpus, .fit_seconds = seconds});
    run["layout"]["nodes"] = run["parameters"]["nodes"] = nodes;
    records.push_back(run);
  }
  const MadeRow made(records, Base::best);
  const auto all_series = make_scaling_series(made.study, made.comparison, made.facts, true);
  ASSERT_EQ(all_series.size(), 1U);
  EXPECT_EQ(all_series[0].name, "");
  ASSERT_EQ(all_series[0].groups.size(), 2U);
  EXPECT_NEAR(all_series[0].groups[1].rows.at(0)->speed_up->ratio.estimate.value, 12.0 / 7, 1e-9);
}

// Strong scaling of a fifth that is not divided, in two systems that begin at 8 and at 16.
std::vector<Json> larger_sizes() {
  std::vector<Json> records;
  for (const char* system : {"A", "B"}) {
    for (const int gpus : {8, 16, 32, 64}) {
      if (system[0] == 'B' && gpus == 8) continue;
      Json run = sample_record({.gpus = gpus, .fit_seconds = 10 * (0.2 + 0.8 * 8 / gpus)});
      run["parameters"]["batch_per_replica"] = 512 / gpus;
      run["provenance"]["cpu_model"] = system;
      run["layout"]["nodes"] = run["parameters"]["nodes"] = gpus / 8;
      records.push_back(run);
    }
  }
  return records;
}

TEST(SizeAsBase, TheSmallestOfASeriesIsItsBase) {
  const MadeRow made(larger_sizes(), Base::smallest);
  ASSERT_EQ(made.study.rows.size(), 7U);
  for (std::size_t i = 0; i < made.study.rows.size(); ++i) {
    const auto& speed_up = made.comparison.speed_ups[i];
    ASSERT_TRUE(speed_up) << i;
    const int base = made.study.rows[speed_up->base].first()->layout.gpus;
    const int gpus = made.study.rows[i].first()->layout.gpus;
    EXPECT_EQ(base, made.study.rows[i].first().system == "A" ? 8 : 16);
    const double ideal = static_cast<double>(gpus) / base;
    const double ratio = (0.2 + 6.4 / base) / (0.2 + 6.4 / gpus);
    EXPECT_NEAR(speed_up->ratio.estimate.value, ratio, 1e-9);
    EXPECT_NEAR(*speed_up->efficiency, ratio / ideal, 1e-9);
    EXPECT_EQ(speed_up->karp_flatt.has_value(), gpus > base);
    if (gpus > base && base == 8) {
      EXPECT_NEAR(speed_up->karp_flatt->value, 0.2, 1e-9) << "of the base's time";
    }
  }
  const auto all_series = make_scaling_series(made.study, made.comparison, made.facts, true);
  ASSERT_EQ(all_series.size(), 2U);
  EXPECT_EQ(all_series[0].groups.front().gpus, 8);
  EXPECT_EQ(all_series[1].groups.front().gpus, 16);
  expect_parts(notes_text(made.section), {"base smallest: the row of the fewest replicas"});
  std::string findings;
  for (const Statement& each : made.section.findings) findings += each.text + "\n";
  expect_parts(findings, {"for 16, 32, 64 replicas"});
}

TEST(SizeAsBase, AnIdealLineIsThatOfOneBase) {
  const auto ideal = [](const std::vector<Json>& records) {
    const MadeRow made(records, Base::smallest);
    const auto plots = speed_up_plots({made.study, made.comparison, made.facts, ""});
    EXPECT_EQ(plots.size(), 1U);
    const auto efficiency = efficiency_plots({made.study, made.comparison, made.facts, ""});
    EXPECT_EQ(efficiency.at(0).subtitle.find("speed-up / ideal speed-up: "), 0U)
        << efficiency.at(0).subtitle;
    return std::get<Lines>(plots.at(0).body).ideal;
  };
  EXPECT_FALSE(ideal(larger_sizes()));
  std::vector<Json> of_one = larger_sizes();
  of_one.resize(4);
  ASSERT_TRUE(ideal(of_one));
  EXPECT_EQ(ideal(of_one)->points.front().x, 8);
  EXPECT_EQ(*ideal(of_one)->points.front().y, 1);
  EXPECT_EQ(ideal(of_one)->points.back().x, 64);
  EXPECT_EQ(*ideal(of_one)->points.back().y, 8);
}

// A full node is what larger ones are measured against.
TEST(SizeAsBase, OfSeveralSizesOfANodeTheLargest) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4, 8}) {
    Json run = sample_record({.gpus = gpus, .fit_seconds = 20.0 / gpus});
    run["layout"]["nodes"] = gpus > 4 ? 2 : 1;
    if (gpus > 4) run["parameters"]["nodes"] = 2;
    records.push_back(run);
  }
  const MadeRow made(records, Base("nodes", "1"));
  ASSERT_EQ(made.study.rows.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(made.study.rows[made.comparison.speed_ups[i]->base].first()->layout.gpus, 4);
  }
  EXPECT_NEAR(*made.cell(3, "speed_up").value, 2, 1e-9);
  EXPECT_NEAR(*made.cell(3, "efficiency").value, 1, 1e-9);
}

TEST(SizeAsBase, IsProposedWhereNothingRanOnOneReplica) {
  const MadeRow made(larger_sizes(), Base::matched);
  expect_parts(join(made.comparison.notes, "\n"), {"--base smallest compares with the smallest"});
}

TEST(SettingAsBase, AStudyOfOneSizeHasItsFirstValue) {
  EXPECT_EQ(default_base(make_studies(canonical_content(tuned({2}))).at(0)),
            Base("bucket_mb", "1"));
  EXPECT_EQ(default_base(make_studies(canonical_content(tuned({1, 2}))).at(0)),
            Base(Base::matched));
  std::vector<Json> two_axes = tuned({2});
  for (Json run : tuned({2})) {
    run["parameters"]["input_threads"] = 3;
    two_axes.push_back(run);
  }
  EXPECT_EQ(default_base(make_studies(canonical_content(two_axes)).at(0)), Base(Base::matched))
      << "which of the two is to be compared nobody has said";
}

TEST(SettingAsBase, AValueThatNoRowHasIsRefused) {
  const auto said = [](const Base& base) {
    return catch_error(ErrorKind::usage,
                       [&] { check_base(make_studies(canonical_content(tuned({2}))), base); });
  };
  EXPECT_EQ(said(Base("bucket_mb", "4.0")), "");
  expect_parts(said(Base("bucket_mb", "5")), {"known values of bucket_mb: 1, 16, 4"});
  expect_parts(said(Base("buckets", "5")), {"the rows differ in bucket_mb"});
  expect_parts(said(Base("gpus", "2")), {"all rows have gpus=2"});
}

TEST(SettingAsBase, APlotShowsTheTimeOverTheValues) {
  const MadeRow made(tuned({1, 2}), Base::matched);
  const auto plots = settings_plots({made.study, made.comparison, made.facts, "a title"});
  ASSERT_EQ(plots.size(), 1U);
  EXPECT_EQ(plots[0].name, "setting-bucket_mb");
  const auto& lines = std::get<Lines>(plots[0].body);
  ASSERT_EQ(lines.series.size(), 2U);
  EXPECT_EQ(lines.series[0].name, "1 replica");
  ASSERT_EQ(lines.series[0].points.size(), 3U);
  EXPECT_EQ(lines.series[0].points[1].x, 4);
  EXPECT_NEAR(*lines.series[0].points[1].y, 2 * made.facts[0].fit_seconds->value / 2.5, 1e-3);
  EXPECT_TRUE(lines.series[0].points[1].interval);
  EXPECT_TRUE(lines.log_x);
  const MadeRow two(std::vector<Json>(8, tuned({2})[0]), Base::matched);
  EXPECT_TRUE(settings_plots({two.study, two.comparison, two.facts, ""}).empty());
}

std::string base_notes(const std::vector<Json>& records, const std::vector<Selection>& only = {}) {
  const Study study = make_studies(canonical_content(records), only).at(0);
  std::string text;
  for (const std::string& note : compare(study, Base::matched).notes) text += note + '\n';
  return text;
}

TEST(MissingBase, WhatNoRunOfOneReplicaHasIsNamed) {
  Json base = sample_record(), like = sample_record({.gpus = 2, .fit_seconds = 5});
  base["parameters"]["bucket_mb"] = like["parameters"]["bucket_mb"] = 8;
  Json other = like;
  other["parameters"]["bucket_mb"] = 1;
  EXPECT_EQ(base_notes({base, like, other}),
            "no speed-up for 2 replicas (mpi): there is no run of one replica with bucket_mb 1; "
            "--base best compares with the fastest\n");
  Json third = like;
  third["parameters"]["bucket_mb"] = 2;
  EXPECT_EQ(base_notes({base, like, other, third}),
            "no speed-up for 2 replicas (mpi): there is no run of one replica with bucket_mb 1 or "
            "bucket_mb 2; --base best compares with the fastest\n");
  expect_parts(base_notes({base, like}, {{"gpus", {"2"}}}),
               {"there is no run of one replica among those shown (gpus=2)"});
}

// Joined by a separator, the parts of two settings could make one text.
TEST(MatchedBase, ValuesThatContainASeparatorAreStillTwoSettings) {
  std::vector<Json> records;
  for (const int gpus : {1, 2}) {
    for (int round = 1; round <= 3; ++round) {
      for (const bool first : {true, false}) {
        const double base = first ? 10 : 40;
        Json run = sample_record({.gpus = gpus, .repeat = round, .fit_seconds = base / gpus});
        run["parameters"]["data"] = first ? "a" : "a|=b";
        run["parameters"]["weights"] = first ? "b|=c" : "c";
        records.push_back(run);
      }
    }
  }
  const MadeRow made(records, Base::matched);
  ASSERT_EQ(made.study.rows.size(), 4U);
  for (std::size_t row = 0; row < 4; ++row) {
    EXPECT_NEAR(*made.cell(row, "speed_up").value, *made.cell(row, "gpus").value, 1e-9) << row;
  }
}

TEST(MissingBase, ABaseThatMissedItsGoalIsNotCalledMissing) {
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    for (const int gpus : {1, 2}) {
      Json json = sample_record({.gpus = gpus, .repeat = round, .fit_seconds = 10.0 / gpus});
      json["quality"]["until"] = {{"goal", "test_accuracy>=0.98"},
                                  {"reached", gpus == 2 || round < 5}};
      records.push_back(json);
    }
  }
  EXPECT_EQ(base_notes(records),
            "no speed-up for 2 replicas (mpi): the base did not reach its goal in 1 of 5 runs\n");
  const MadeRow made(records, Base::matched);
  EXPECT_TRUE(std::ranges::any_of(made.section.notes, [](const std::string& note) {
    return note.starts_with("fit seconds end with the last epoch, or earlier");
  }));
}

}  // namespace
}  // namespace paceline

#include "analysis/predict/prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/plots/script.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/samples.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

// A step takes 1 of a batch of one replica, and an overhead of 0.05 log2 p.
Json make_record(Scaling scaling, int gpus) {
  const double steps = 100, share = scaling == Scaling::strong ? 1.0 / gpus : 1.0;
  const double taken = scaling == Scaling::fixed_epochs ? steps / gpus : steps;
  const double seconds = taken * (share + 0.05 * std::log2(gpus));
  Json record = sample_record({.gpus = gpus, .fit_seconds = seconds});
  record.erase("phases");
  Json& parameters = record["parameters"];
  const double samples = taken * 64 * gpus * share;
  record["throughput"] = {
      {"samples", samples}, {"samples_per_second", samples / seconds}, {"steps", taken}};
  if (scaling == Scaling::strong) {
    parameters.erase("batch_per_replica");
    parameters["global_batch"] = 64;
  }
  if (scaling == Scaling::weak) {
    parameters.erase("epochs");
    parameters["steps"] = static_cast<int>(steps);
  }
  return record;
}

std::vector<Json> make_study(Scaling scaling, const std::vector<int>& sizes) {
  std::vector<Json> records;
  for (const int gpus : sizes) records.push_back(make_record(scaling, gpus));
  return records;
}

std::vector<Prediction> predicted(const std::vector<Json>& records, std::vector<int> gpus,
                                  const std::string& what_if = "") {
  PredictOptions options;
  options.gpus = std::move(gpus);
  options.what_if = what_if;
  return predict(canonical_content(records), options);
}

TEST(Prediction, EachScalingTypeHasItsOwnQuantityAndLaw) {
  for (const Scaling scaling : {Scaling::strong, Scaling::fixed_epochs, Scaling::weak}) {
    const Prediction one = predicted(make_study(scaling, {1, 2, 4, 8}), {16}).at(0);
    EXPECT_EQ(one.scaling, scaling);
    EXPECT_EQ(one.rates, scaling == Scaling::weak);
    ASSERT_EQ(one.sizes.size(), 5U);
    const SizeValue& size = one.sizes.back();
    EXPECT_TRUE(size.is_predicted);
    const Json truth = make_record(scaling, 16);
    const double value = one.rates ? truth["throughput"]["samples_per_second"].get<double>()
                                   : truth["timing"]["fit_seconds"].get<double>();
    // Laws are mixed, so not exact; the law that made the data is.
    EXPECT_NEAR(size.value.value / value, 1, 0.1) << to_string(scaling);
    EXPECT_LT(size.value.interval->low, value);
    EXPECT_GT(size.value.interval->high, value);
    const auto law = std::ranges::find_if(
        one.laws, [](const LawWeight& each) { return std::string(each.law.name()) == "log p"; });
    EXPECT_NEAR(law->error, 0, 1e-6) << to_string(scaling);
  }
}

TEST(Prediction, TheHeldOutErrorStandsBesideEveryPredictedRow) {
  const Prediction one = predicted(make_study(Scaling::weak, {1, 2, 4, 8}), {16, 8, 64}).at(0);
  const HeldOut& held_out = *one.predictor().held_out;
  EXPECT_EQ(held_out.gpus, 8);
  EXPECT_EQ(held_out.fitted, (std::vector<int>{1, 2, 4}));
  // The same procedure with the smaller sizes alone.
  const Prediction smaller = predicted(make_study(Scaling::weak, {1, 2, 4}), {8}).at(0);
  EXPECT_NEAR(held_out.error, smaller.sizes.back().value.value / one.sizes[3].value.value - 1,
              1e-9);
  const Section section = prediction_document({one}).sections.at(0);
  ASSERT_EQ(section.table.rows.size(), 6U);  // 8 was measured
  for (std::size_t i = 0; i < section.table.rows.size(); ++i) {
    const bool is_predicted = i >= 4;
    EXPECT_EQ(cell(section, i, "kind").text, is_predicted ? "predicted" : "measured");
    EXPECT_EQ(cell(section, i, "held_out_error").value.has_value(), is_predicted);
    EXPECT_EQ(cell(section, i, "predictor").text, is_predicted ? "laws" : "");
  }
  EXPECT_NEAR(*cell(section, 5, "held_out_error").value, held_out.error, 1e-12);
  EXPECT_NEAR(*cell(section, 3, "efficiency").value, 1 / 1.15, 1e-9);
}

TEST(Prediction, LargerSizesCanBeLeftOutToCompare) {
  PredictOptions options;
  options.gpus = {8};
  options.up_to = 4;
  const Prediction one =
      predict(canonical_content(make_study(Scaling::weak, {1, 2, 4, 8})), options).at(0);
  ASSERT_EQ(one.sizes.size(), 4U);
  EXPECT_TRUE(one.sizes[3].is_predicted);
  EXPECT_EQ(one.predictor().held_out->gpus, 4);
}

TEST(Prediction, TheBaseIsASizeThatWasRun) {
  const Section section =
      prediction_document({predicted(make_study(Scaling::weak, {2, 4, 8}), {1}).at(0)})
          .sections.at(0);
  EXPECT_EQ(cell(section, 0, "kind").text, "predicted");
  EXPECT_NEAR(*cell(section, 1, "speed_up").value, 1, 1e-12);
  EXPECT_EQ(section.table.columns[2].heading, "speed-up\nover 2");
}

TEST(Prediction, ALineOfPredictionsDoesNotCrossSizesThatWereRun) {
  const Plot plot =
      prediction_plot(predicted(make_study(Scaling::weak, {2, 4, 8}), {1, 16, 32}).at(0));
  const std::vector<PlotPoint>& points = std::get<Lines>(plot.body).series[1].points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_FALSE(points[0].begins_line);
  EXPECT_TRUE(points[1].begins_line);
  EXPECT_FALSE(points[2].begins_line);
  expect_parts(plot_script(plot, "svg"), {"\n\n16 "});
}

TEST(Prediction, EveryFormatReportsWhatWasPredicted) {
  const Prediction one = predicted(make_study(Scaling::fixed_epochs, {1, 2, 4}), {8}).at(0);
  const Document document = prediction_document({one});
  const Json json = Json::parse(to_json_text(document));
  EXPECT_EQ(document.title, "Prediction of quick");
  EXPECT_EQ(prediction_plot(one).title,
            "Prediction of quick: mnist-cnn, fp32, fixed-epochs scaling: mpi");
  const Json& rows = json["tables"][0]["rows"];
  EXPECT_EQ(rows[0]["kind"], "measured");
  EXPECT_EQ(rows[3]["kind"], "predicted");
  EXPECT_TRUE(rows[3]["fit_seconds_low"].is_number());
  EXPECT_EQ(rows[3]["laws_fit_seconds"], rows[3]["fit_seconds"]);
  EXPECT_TRUE(rows[3]["law_log_p_fit_seconds"].is_number());
  expect_parts(to_csv(document), {"\n8 replicas,"});
  expect_parts(to_markdown(document), {"| predicted |"});
  expect_parts(plot_script(prediction_plot(one), "svg"), {"dashtype (3,3) title 'predicted'"});
  std::istringstream text(to_text(document, {.width = 80, .terminal_width = 80}));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 90U) << line;
}

TEST(Prediction, WhatWasRunStaysAsItIs) {
  std::vector<Json> records = make_study(Scaling::weak, {1, 2, 4});
  const Prediction one = predicted(records, {2, 8}).at(0);
  ASSERT_EQ(one.sizes.size(), 4U);
  EXPECT_FALSE(one.sizes[1].is_predicted);
  EXPECT_EQ(one.notes, std::vector<std::string>{"size 2 is not predicted: the records have it"});
  for (Json& record : records) record["kind"] = "published";
  const Section section = prediction_document({predicted(records, {8}).at(0)}).sections.at(0);
  EXPECT_EQ(cell(section, 0, "kind").text, "published");
  EXPECT_EQ(cell(section, 3, "kind").text, "predicted");
}

TEST(Prediction, TwoSizesAreDistinguishedFromMore) {
  const Prediction one = predicted(make_study(Scaling::weak, {1, 2}), {4}).at(0);
  EXPECT_EQ(one.predictor().held_out->fitted, std::vector<int>{1});
  ASSERT_FALSE(one.predictor().notes.empty());
  expect_parts(one.predictor().notes[0], {"measure a third size: two do not distinguish laws"});
}

TEST(Prediction, WhatCannotBePredictedReportsWhy) {
  StoreContent content = canonical_content(make_study(Scaling::weak, {2}));
  content.rejected.push_back({"s/gpus=4", "s/gpus=4: the folder cannot be read"});
  PredictOptions options;
  options.gpus = {8};
  expect_error(ErrorKind::input,
               {"s/gpus=4: the folder cannot be read: nothing can be predicted: "},
               [&] { predict(content, options); });
  expect_error(ErrorKind::input, {"one size was measured: a law needs two"},
               [] { predicted(make_study(Scaling::fixed_epochs, {2}), {4}); });
  const std::vector<Json> weak = make_study(Scaling::weak, {1, 2, 4});
  expect_error(ErrorKind::input, {"they know only sizes"},
               [&] { predicted(weak, {8}, "links=2x"); });
  PredictOptions laws;
  laws.gpus = {8};
  laws.what_if = "links=2x";
  laws.predictor = PredictorChoice::laws;
  expect_error(ErrorKind::usage, {"they have no what-if"},
               [&] { predict(canonical_content(weak), laws); });
}

TEST(Prediction, PredictedRecordsAreNoData) {
  std::vector<Json> records = make_study(Scaling::weak, {1, 2, 4});
  records.push_back(make_record(Scaling::weak, 8));
  records.back()["kind"] = "predicted";
  EXPECT_EQ(predicted(records, {16}).at(0).predictor().held_out->gpus, 4);
}

// Groups of cores: the CPUs of a node say how many it holds.
TEST(Prediction, ALevelThatNoMeasuredSizeCrossesIsLabelled) {
  std::vector<Json> records = make_study(Scaling::weak, {1, 2, 4});
  for (Json& record : records) record["provenance"]["machine"] = {{"cpus", 8}};
  const Prediction one = predicted(records, {8, 16}).at(0);
  EXPECT_EQ(one.sizes[3].beyond, "");
  EXPECT_EQ(one.sizes[4].beyond, "node");
  EXPECT_EQ(one.sizes[4].nodes, 2);
  for (Json& record : records) record["layout"]["replicas_are"] = "gpus";
  EXPECT_EQ(predicted(records, {8}).at(0).sizes[3].beyond, "node?");
  for (Json& record : records) {
    const int gpus = record["layout"]["gpus"];
    record["layout"]["nodes"] = std::max(gpus / 2, 1);
  }
  const SizeValue size = predicted(records, {8}).at(0).sizes[3];
  EXPECT_EQ(size.beyond, "");
  EXPECT_EQ(size.nodes, 4);
}

TEST(Prediction, ALevelOfADescribedNetworkIsLabelledToo) {
  PredictOptions options;
  options.gpus = {8, 16};
  options.network = parse_network(
      R"({"levels": [{"level": "node", "units": 8, "latency_seconds": 1e-4, "bytes_per_second": 1e8},
                     {"level": "switch", "latency_seconds": 1e-3, "bytes_per_second": 1e8}]})",
      "links.json");
  const Prediction one =
      predict(canonical_content(make_study(Scaling::weak, {1, 2, 4})), options).at(0);
  EXPECT_EQ(one.sizes[3].beyond, "");
  EXPECT_EQ(one.sizes[4].beyond, "switch");
  EXPECT_TRUE(one.sizes[3].value.interval);
  EXPECT_FALSE(one.sizes[4].value.interval);
}

// What 64 CPUs could hold says nothing where 8 replicas were put on two nodes.
TEST(Prediction, RowsOfSeveralNodesShowHowManyReplicasANodeHolds) {
  std::vector<Json> records = make_study(Scaling::weak, {1, 2, 4, 8});
  for (Json& record : records) record["provenance"]["machine"] = {{"cpus", 64}};
  const auto nodes_of_32 = [&] { return predicted(records, {32}).at(0).sizes.back().nodes; };
  EXPECT_EQ(nodes_of_32(), 1);
  records[3]["layout"]["nodes"] = 2;
  EXPECT_EQ(nodes_of_32(), 8);
  records[1]["layout"]["nodes"] = 2;
  records[3]["layout"]["nodes"] = 1;
  EXPECT_EQ(nodes_of_32(), 4) << "the largest row has eight on its one node";
}

TEST(Prediction, TheIntervalReachesToALimitThatNoSizeShows) {
  std::vector<Json> records = make_study(Scaling::weak, {1, 2, 4, 8});
  for (Json& record : records) record["provenance"]["machine"] = {{"cpus", 64}};
  const Prediction one = predicted(records, {6, 16, 64}).at(0);
  const double of_8 = one.sizes[4].value.value;
  for (const std::size_t i : {5, 6}) {
    const SizeValue& size = one.sizes[i];
    EXPECT_LE(size.value.interval->low, of_8 * (1 + 1e-9)) << "no gain beyond 8 replicas";
    const Interval& steady = *size.by_predictor[0]->interval;
    EXPECT_GT(steady.low, 1.2 * of_8);
    EXPECT_GE(size.value.interval->high, steady.high);
  }
  // A step may lie before 6 replicas, or behind them.
  const Interval& between = *one.sizes[3].value.interval;
  EXPECT_LE(between.low, of_8 * 6 / 8);
  EXPECT_GE(between.high, one.sizes[2].value.value * 6 / 4);
  expect_parts(to_text(prediction_document({one})),
               {"reach to no gain beyond 8 replicas", "a limit begins there; without one: "});
}

TEST(Prediction, NoIntervalBeyondALinkThatWasNeverMeasured) {
  std::vector<Json> records = make_study(Scaling::weak, {1, 2, 4});
  for (Json& record : records) record["provenance"]["machine"] = {{"cpus", 8}};
  const Prediction one = predicted(records, {8, 16, 32}).at(0);
  EXPECT_TRUE(one.sizes[3].value.interval);
  const Document document = prediction_document({one});
  const Json row = Json::parse(to_json_text(document))["tables"][0]["rows"][4];
  EXPECT_TRUE(row["samples_per_second"].is_number());
  EXPECT_TRUE(row["samples_per_second_low"].is_null());
  EXPECT_TRUE(row["laws_samples_per_second_low"].is_null());
  expect_parts(
      to_text(document),
      {"measure a size that crosses a node: no measured one does, so 16, 32 replicas have no ±"});
}

// Two layouts of one size are no series: the sizes of each number of nodes are.
TEST(Prediction, ALayoutOnOtherNodesIsASeriesOfItsOwn) {
  std::vector<Json> records = make_study(Scaling::weak, {1, 2, 4});
  for (const int gpus : {2, 4}) {
    records.push_back(make_record(Scaling::weak, gpus));
    records.back()["layout"]["nodes"] = 2;
  }
  const std::vector<Prediction> all = predicted(records, {16});
  ASSERT_EQ(all.size(), 2U);
  for (const Prediction& one : all) EXPECT_EQ(one.sizes.size(), 4U);
  expect_parts(all[0].title, {"1 node"});
  EXPECT_EQ(all[1].sizes.back().nodes, 8);
}

TEST(Prediction, BackendsAreSeriesOfTheirOwnAndShareOneReplica) {
  std::vector<Json> records = make_study(Scaling::weak, {1});
  records[0]["parameters"]["backend"] = "self";
  for (const char* backend : {"mpi", "gloo"}) {
    for (const int gpus : {2, 4}) {
      records.push_back(make_record(Scaling::weak, gpus));
      records.back()["parameters"]["backend"] = backend;
    }
  }
  const std::vector<Prediction> all = predicted(records, {8});
  ASSERT_EQ(all.size(), 2U);
  for (const Prediction& one : all) EXPECT_EQ(one.sizes.size(), 4U) << one.title;
}

TEST(Prediction, FilesReplaceOnlyThoseOfOlderPredictions) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "paceline-prediction";
  std::filesystem::remove_all(folder);
  const std::vector<Document> all = {
      prediction_document(predicted(make_study(Scaling::weak, {1, 2, 4}), {8}))};
  const OutputOptions options{.out = folder, .plots = {}};
  std::ostringstream printed;
  EXPECT_EQ(write_documents(all, options, printed).tables.size(), 4U);
  EXPECT_EQ(write_documents(all, options, printed).tables.size(), 4U);
  expect_parts(read_text(folder / "prediction.html"), {"predicted"});
  std::filesystem::remove(folder / "prediction.json");
  expect_error(ErrorKind::input, {"prediction.md"},
               [&] { write_documents(all, options, printed); });
}

}  // namespace
}  // namespace paceline

#include "analysis/table/sheet.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

const std::vector<double> kQuietRuns = {1.0, 1.004, 0.997, 1.002};

// Runs of each number of replicas, in rounds.
std::vector<Json> sheet_runs(const std::map<int, double>& seconds,
                             const std::vector<double>& factors = kQuietRuns,
                             const std::string& backend = "mpi") {
  std::vector<Json> records;
  for (const auto& [gpus, time] : seconds) {
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const int round = static_cast<int>(i) + 1;
      const double wobble = 1 + 0.001 * ((gpus + round) % 3);
      records.push_back(sample_record({.gpus = gpus,
                                       .repeat = round,
                                       .fit_seconds = time * factors[i] * wobble,
                                       .backend = backend}));
    }
  }
  return records;
}

// Efficiencies of 100, 91, 81 and 62 %.
const std::map<int, double> kSeconds = {{1, 100}, {2, 55}, {4, 31}, {8, 20}};

struct Made {
  Document document;
  Json json;
  std::string text;

  explicit Made(const std::vector<Json>& records, double least = 0.7,
                const Base& base = Base::matched)
      : document(sheet_document(make_studies(canonical_content(records)).at(0), base, least)),
        json(Json::parse(to_json_text(document))),
        text(full_text(document)) {}

  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

TEST(Sheet, ChoosesTheLargestSizeWhoseEfficiencyHolds) {
  const Made made(sheet_runs(kSeconds));
  EXPECT_EQ(made.json["chosen"]["gpus"], 4);
  EXPECT_TRUE(
      made.says("4 replicas on 1 node: the largest size whose parallel efficiency is at "
                "least 70 % with its whole 95 % interval"))
      << made.text;
  EXPECT_TRUE(made.says("below with the whole interval: 8 replicas (62.")) << made.text;
  EXPECT_FALSE(made.says("cannot be judged")) << made.text;
  EXPECT_TRUE(made.says("Base: 1 replica, 100")) << made.text;
  EXPECT_TRUE(
      made.says("code: Paceline 0.1.0, commit abc without uncommitted changes; workload "
                "mnist-cnn"))
      << made.text;
  EXPECT_TRUE(made.says("node: A CPU\n")) << made.text;
  EXPECT_TRUE(made.says("so add it by hand: the interconnect")) << made.text;
  ASSERT_EQ(made.json["sizes"].size(), 4U);
  EXPECT_NEAR(made.json["sizes"][2]["node_hours"].get<double>(), 31 / 3600.0, 1e-4);
  EXPECT_NEAR(made.json["sizes"][2]["core_hours"].get<double>(), 4 * 31 / 3600.0, 4e-4);
  EXPECT_TRUE(made.json["sizes"][2]["gpu_hours"].is_null());
  EXPECT_EQ(made.json["sizes"][3]["verdict"], "below 70 %");
  const std::vector<const Plot*> plots = all_plots(made.document);
  ASSERT_EQ(plots.size(), 1U);
  EXPECT_TRUE(std::get<Lines>(plots[0]->body).ideal);
}

TEST(Sheet, TheThresholdDecides) {
  EXPECT_EQ(Made(sheet_runs(kSeconds), 0.85).json["chosen"]["gpus"], 2);
  const Made all(sheet_runs(kSeconds), 0.5);
  EXPECT_EQ(all.json["chosen"]["gpus"], 8);
  EXPECT_TRUE(all.says("it is the largest size of the table")) << all.text;
  const Made base(sheet_runs(kSeconds), 0.95);
  EXPECT_EQ(base.json["chosen"]["gpus"], 1);
  EXPECT_TRUE(base.says("1 replica, the base: no larger size")) << base.text;
}

TEST(Sheet, OneRunOfEachSizeDecidesNothing) {
  const Made made(sheet_runs(kSeconds, {1.0}));
  EXPECT_EQ(made.json["chosen"]["gpus"], 1);
  EXPECT_TRUE(made.says("the base: no larger size")) << made.text;
  EXPECT_TRUE(made.says(", fewer than 3 runs")) << made.text;
  EXPECT_TRUE(made.says("the largest by the means alone, which do not decide: 4 replicas (80."))
      << made.text;
  EXPECT_TRUE(made.says("run more repeats")) << made.text;
}

TEST(Sheet, AnIntervalAroundTheThresholdDecidesNothing) {
  std::vector<Json> records = sheet_runs({{1, 100}, {2, 55}});
  for (const Json& noisy : sheet_runs({{4, 34}}, {1.2, 0.85, 1.1, 0.9})) records.push_back(noisy);
  const Made made(records);
  EXPECT_EQ(made.json["chosen"]["gpus"], 2);
  EXPECT_EQ(made.json["sizes"][2]["verdict"], "cannot tell");
  EXPECT_TRUE(made.says("cannot be judged: 4 replicas (7")) << made.text;
  EXPECT_FALSE(made.says("it is the largest size")) << made.text;
}

TEST(Sheet, OneSizeShowsNoScaling) {
  const Made made(sheet_runs({{2, 55}}));
  EXPECT_TRUE(made.json["chosen"].is_null());
  EXPECT_TRUE(made.says("No size can be chosen: there is only one size")) << made.text;
  EXPECT_TRUE(made.says("No speed-up: no size has another one as its base")) << made.text;
  EXPECT_TRUE(made.says("there is no plot")) << made.text;
}

TEST(Sheet, StudiesThatBeginAtSeveralNodesHaveTheSmallestSizeAsBase) {
  std::vector<Json> records = sheet_runs({{4, 100}, {8, 52}, {16, 30}});
  for (Json& json : records) {
    json["layout"]["replicas_are"] = "gpus";
    json["layout"]["nodes"] = json["layout"]["gpus"].get<int>() / 4;
  }
  const Made made(records);
  EXPECT_EQ(made.json["base"], "smallest");
  EXPECT_EQ(made.json["chosen"]["gpus"], 16);
  EXPECT_EQ(made.json["chosen"]["nodes"], 4);
  EXPECT_NEAR(made.json["chosen"]["node_hours"].get<double>(), 4 * 30 / 3600.0, 4e-4);
  EXPECT_NEAR(made.json["chosen"]["gpu_hours"].get<double>(), 16 * 30 / 3600.0, 2e-3);
  EXPECT_TRUE(made.says("layout: 1 to 4 nodes, 4 GPUs used a node")) << made.text;
  EXPECT_TRUE(made.says("16 GPUs on 4 nodes: ")) << made.text;
}

TEST(Sheet, RatesWithoutTimesHaveNoHours) {
  std::vector<Json> records = sheet_runs({{1, 100}, {2, 55}});
  for (Json& json : records) {
    json["timing"].erase("fit_seconds");
    json["throughput"] = {{"samples_per_second", json["throughput"]["samples_per_second"]}};
    json["provenance"]["program"] = {{"name", "train"}, {"commit", "3f9a"}, {"dirty", true}};
    json["phases"] = Json::array();
  }
  const Made made(records);
  EXPECT_EQ(made.json["chosen"]["gpus"], 2);
  EXPECT_TRUE(made.says("the hours of a run are not known")) << made.text;
  EXPECT_TRUE(made.says("Base: 1 replica, ")) << made.text;
  EXPECT_TRUE(made.says("samples/s. Efficiency")) << made.text;
  EXPECT_TRUE(made.says("code: train, commit 3f9a with uncommitted changes; measured by Paceline"))
      << made.text;
}

TEST(Sheet, IsOfOneSeriesAndNamesTheOthers) {
  std::vector<Json> records = sheet_runs({{1, 100}, {2, 60}, {4, 40}});
  for (const Json& json : sheet_runs({{1, 100}, {2, 55}, {4, 31}}, kQuietRuns, "gloo")) {
    records.push_back(json);
  }
  const Made made(records);
  EXPECT_EQ(made.json["series"], "gloo");
  EXPECT_EQ(made.json["sizes"].size(), 3U);
  EXPECT_TRUE(made.says("of 2 series this is gloo; --only chooses another: mpi")) << made.text;
}

TEST(Sheet, ASizeThatTrainedWorseIsNotChosen) {
  std::vector<Json> records = sheet_runs({{1, 100}, {2, 55}, {4, 31}});
  for (Json& json : records) {
    if (json["layout"]["gpus"] == 4) json["quality"]["test_accuracy"] = 0.9;
  }
  const Made made(records);
  EXPECT_EQ(made.json["chosen"]["gpus"], 2);
  EXPECT_TRUE(made.says("left aside: 4 replicas (80.")) << made.text;
  EXPECT_TRUE(made.says("lower accuracy")) << made.text;
}

// Steps of nothing but computing and waiting for others.
void set_phases(Json& json, double share_of_computing) {
  const double seconds = json["timing"]["fit_seconds"], compute = seconds * share_of_computing;
  for (Json& phases : json["phases"]) {
    phases = {{"input", 0.0},    {"forward", compute / 2},
              {"update", 0.0},   {"backward", compute / 2},
              {"step", seconds}, {"communication", seconds - compute},
              {"other", 0.0}};
  }
}

// One replica takes 30 % too long: eight have 85 % of it, and 65 % of what the others do.
TEST(Sheet, ASlowBaseMakesNoChoice) {
  std::vector<Json> records = sheet_runs({{1, 130}, {2, 50}, {4, 25}, {8, 19.2}});
  for (const bool has_phases : {true, false}) {
    for (Json& json : records) {
      set_phases(json, json["layout"]["gpus"] == 8 ? 0.65 : 1);
      if (!has_phases) json["phases"] = Json::array();
    }
    const Made made(records);
    EXPECT_EQ(made.json["chosen"]["gpus"], 4) << made.text;
    for (const char* part :
         {"also over what computes faster than the base", "cannot be judged: 8 replicas (84.",
          ", 65.", "above the ideal line: 2 replicas; 4 replicas: is the base slow"}) {
      EXPECT_TRUE(made.says(part)) << part << " in\n" << made.text;
    }
    EXPECT_EQ(made.json["sizes"][3]["verdict"], "cannot tell");
  }
  const Made sound(sheet_runs(kSeconds));
  EXPECT_FALSE(sound.says("computes faster") || sound.says("above the ideal")) << sound.text;
}

// With phases, no size needs to be above the ideal line for it: 91 % of the base, 64 % beside one
// that computes as fast.
TEST(Sheet, ABaseThatComputesSlowerMakesNoChoice) {
  std::vector<Json> records = sheet_runs({{1, 120}, {2, 66}});
  for (Json& json : records) set_phases(json, json["layout"]["gpus"] == 2 ? 0.64 : 1);
  const Made made(records, 0.8);
  EXPECT_EQ(made.json["chosen"]["gpus"], 1) << made.text;
  EXPECT_TRUE(made.says("cannot be judged: 2 replicas (91.")) << made.text;
  EXPECT_TRUE(made.says(", 64.")) << made.text;
  EXPECT_EQ(Made(records, 0.6).json["chosen"]["gpus"], 2);
}

TEST(Sheet, SaysOfItsRowsWhatTheReportSays) {
  std::vector<Json> records = sheet_runs(kSeconds);
  for (Json& json : records) {
    const int gpus = json["layout"]["gpus"];
    json["provenance"]["hosts"] =
        std::vector<std::string>(static_cast<std::size_t>(gpus), gpus == 4 ? "node9" : "node1");
  }
  for (const int attempt : {5, 6}) {
    Json failed = sample_record({.gpus = 4, .repeat = attempt});
    failed["status"] = "failed";
    failed["reason"] = "out of memory";
    records.push_back(failed);
  }
  const Made made(records);
  EXPECT_EQ(made.json["chosen"]["gpus"], 4);
  for (const char* part :
       {"4 replicas ran only on node9, no other row did", "4 replicas: 4 of 6 runs completed",
        "hours of attempts without a result are not counted: 4 replicas (2 attempts)",
        "2 of 6 attempts there ended without a result: if those take as long as others, plan 1.50 "
        "times these hours for a run"}) {
    EXPECT_TRUE(made.says(part)) << part << " in\n" << made.text;
  }
}

TEST(Sheet, IsAPageOfItsOwnInEachFormat) {
  const Made made(sheet_runs(kSeconds));
  const std::string latex = to_latex(made.document);
  EXPECT_TRUE(latex.find("\\subsection*{The size to apply for}\n4 replicas on 1 node") !=
              std::string::npos)
      << latex;
  EXPECT_TRUE(latex.find("\\footnotesize\n\\begin{itemize}") != std::string::npos) << latex;
  EXPECT_TRUE(latex.find("{speedup.pdf}") != std::string::npos) << latex;
  EXPECT_TRUE(to_html(made.document, {}).find("<main class=\"sheet\">") != std::string::npos);
  EXPECT_EQ(to_html({}, {}).find("<main class"), std::string::npos);
}

}  // namespace
}  // namespace paceline

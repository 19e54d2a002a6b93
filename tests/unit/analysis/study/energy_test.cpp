// What records say about energy, in columns, plots and in the choice of a point.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/findings/best.h"
#include "analysis/plots/study_plots.h"
#include "engine/core/error.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {

PlotMaker energy_plots;

namespace {

Json meter_json(const std::string& name, const std::string& covers, double joules) {
  return {{"meter", name}, {"covers", covers}, {"counters", 1}, {"seconds", 1}, {"joules", joules}};
}

// Three rounds of one and of two replicas: 100 W and 150 W, the second 1.8 times as fast.
std::vector<Json> metered(const std::string& covers = "GPUs + CPUs") {
  std::vector<Json> records = drifting_study();
  for (Json& record : records) {
    const double seconds = record["timing"]["fit_seconds"];
    const double joules = seconds * (record["layout"]["gpus"] == 1 ? 100 : 150);
    record["energy"] = {{"covers", covers}, {"shared", false},         {"seconds", seconds},
                        {"joules", joules}, {"evaluation_joules", 36}, {"checkpoint_joules", 0},
                        {"idle_watts", 40}};
  }
  return records;
}

struct Metered : Compared {
  using Compared::Compared;
  Section section(const std::vector<std::string>& choice = {"energy"}) const {
    Section made = Compared::section();
    choose_columns(made, choice);
    return made;
  }
  std::vector<std::string> plots() const {
    std::vector<std::string> names;
    for (const Plot& plot : study_plots({study, comparison, facts, "title"})) {
      names.push_back(plot.name);
    }
    return names;
  }
};

bool has_note(const Section& section, const std::string& text) {
  return notes_text(section).find(text) != std::string::npos;
}

bool names_have(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

TEST(EnergyColumns, HaveIntervalsAndReportWhatTheyCover) {
  const Metered study(metered());
  const Section section = study.section();
  EXPECT_NEAR(*cell(section, 0, "energy_joules").value, 100 * 18 * (1 + 1.3 + 0.8) / 3, 1e-9);
  EXPECT_TRUE(cell(section, 1, "energy_joules").interval);
  EXPECT_NEAR(*cell(section, 1, "mean_watts").value, 150, 1e-9);
  EXPECT_EQ(cell(section, 1, "idle_watts").text, "40.0");
  EXPECT_EQ(cell(section, 0, "energy_efficiency").text, "100.0 %");
  // 1.8 times as fast with 1.5 times the power: 1.2 times the samples per joule.
  const double sum = 1 + 1.3 + 0.8, noisy_sum = 1 + 1.3 * 1.01 + 0.8 * 0.99;
  EXPECT_NEAR(*cell(section, 1, "energy_efficiency").value, 1.2 * sum / noisy_sum, 1e-9);
  const auto interval = cell(section, 1, "energy_efficiency").interval;
  ASSERT_TRUE(interval);
  EXPECT_LT(interval->high - interval->low, 0.1) << "paired: drift of the machine cancels";
  EXPECT_EQ(cell(section, 0, "joules_beside_training").text, "0.0100");
  EXPECT_EQ(cell(section, 0, "energy_covers").text, "GPUs + CPUs");
  const double squares = (1 + 1.3 * 1.3 + 0.8 * 0.8) / 3;
  EXPECT_NEAR(*cell(section, 0, "energy_delay_joule_seconds").value, 100 * 18 * 18 * squares, 1e-6);
  EXPECT_EQ(cell(section, 0, "energy_runs").value, 3);
  expect_no_parts(cell(section, 0, "energy_joules").text, {"run"});
  EXPECT_FALSE(has_note(study.section({"time"}), "energy:")) << "only where they are shown";
}

TEST(EnergyColumns, AFigureOfFewerRunsThanItsRowIsMarked) {
  std::vector<Json> records = metered();
  for (Json& record : records) {
    if (record["layout"]["gpus"] == 2 && record["round"] != 2) record["energy"].erase("joules");
  }
  const Section section = Metered(records).section();
  EXPECT_EQ(cell(section, 1, "runs").text, "3");
  EXPECT_TRUE(cell(section, 1, "energy_joules").text.ends_with(" (1 run)"));
  EXPECT_TRUE(cell(section, 1, "energy_efficiency").text.ends_with(" (1 run)"));
  EXPECT_TRUE(cell(section, 1, "energy_delay_joule_seconds").text.ends_with(" (1 run)"));
  EXPECT_EQ(cell(section, 1, "energy_runs").value, 1);
  for (Json& record : records) {
    const bool is_base = record["layout"]["gpus"] == 1;
    if (is_base && record["round"] != 2) record["energy"].erase("joules");
    if (!is_base) record["energy"]["joules"] = 1000;
  }
  EXPECT_TRUE(
      cell(Metered(records).section(), 1, "energy_efficiency").text.ends_with(" (base: 1 run)"));
}

TEST(EnergyColumns, RowsOfUnlikeCoverageHaveNoCommonRatio) {
  std::vector<Json> records = metered();
  for (Json& record : records) {
    if (record["layout"]["gpus"] == 2) record["energy"]["covers"] = "GPUs";
  }
  const Metered study(records);
  EXPECT_EQ(cell(study.section(), 1, "energy_efficiency").text, "");
  EXPECT_NE(cell(study.section(), 1, "energy_joules").text, "");
  EXPECT_FALSE(names_have(study.plots(), "energy_efficiency"));
  records = metered();
  records[1]["energy"]["covers"] = "GPUs";
  EXPECT_EQ(cell(Metered(records).section(), 1, "energy_covers").text, "unlike");
}

TEST(EnergyColumns, ASharedNodeIsNamedAndNotCompared) {
  std::vector<Json> records = metered("node");
  records[1]["energy"]["shared"] = true;
  const Section section = Metered(records).section();
  EXPECT_EQ(cell(section, 1, "energy_covers").text, "node, shared with other jobs");
  EXPECT_EQ(cell(section, 1, "energy_efficiency").text, "");
}

TEST(EnergyColumns, WhatIsMissingReportsWhy) {
  EXPECT_TRUE(has_note(Metered(drifting_study()).section(),
                       "without an energy: 6 runs: no meter (paceline doctor"));
  std::vector<Json> records = metered();
  records[0]["energy"].erase("joules");
  records[0]["energy"]["trouble"] = "GPU counter: 2 s are too short: it takes 10 s";
  EXPECT_TRUE(has_note(Metered(records).section(), "1 run: GPU counter: 2 s are too short"));
}

TEST(EnergyColumns, MetersThatDifferAreBothShown) {
  std::vector<Json> records = metered();
  for (Json& record : records) {
    record["energy"]["meters"] = {meter_json("GPU counter", "GPUs", 1000),
                                  meter_json("GPU power", "GPUs", 1150),
                                  meter_json("RAPL", "CPUs", 500)};
  }
  EXPECT_TRUE(has_note(Metered(records).section(),
                       "meters that differ: GPUs: GPU power counts 15 % more than GPU counter (6 "
                       "runs)"));
  for (Json& record : records) record["energy"]["meters"][1]["joules"] = 1090;
  EXPECT_FALSE(has_note(Metered(records).section(), "meters that differ"));
}

TEST(EnergyPlots, EfficiencyOverReplicasAndEnergyOverTime) {
  const Metered study(metered());
  EXPECT_TRUE(names_have(study.plots(), "energy_efficiency"));
  EXPECT_TRUE(names_have(study.plots(), "energy_time"));
  EXPECT_FALSE(names_have(Metered(drifting_study()).plots(), "energy_time"));
  const auto plots = energy_plots({study.study, study.comparison, study.facts, "title"});
  ASSERT_EQ(plots.size(), 2U);
  const Lines& times = std::get<Lines>(plots[1].body);
  ASSERT_EQ(times.series.size(), 1U);
  // Two replicas are faster and take less energy: they alone are the front.
  EXPECT_EQ(times.series[0].points[0].label, "2");
  EXPECT_TRUE(times.series[0].points[0].ringed);
  EXPECT_FALSE(times.series[0].points[1].ringed);
}

// Four replicas are 3 % faster than two for a third more energy.
std::vector<Json> frugal() {
  std::vector<Json> records;
  for (int round = 1; round <= 4; ++round) {
    for (const auto& [gpus, seconds, watts] :
         {std::tuple{1, 100.0, 100.0}, std::tuple{2, 51.5, 180.0}, std::tuple{4, 50.0, 250.0}}) {
      const double fit = seconds * (1 + 0.001 * (round % 3));
      Json record = sample_record({.gpus = gpus, .repeat = round, .fit_seconds = fit});
      record["energy"] = {{"covers", "node"}, {"seconds", fit}, {"joules", fit * watts}};
      records.push_back(record);
    }
  }
  return records;
}

const CostMetric* metric(const std::string& name) {
  for (const CostMetric& each : expenses()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

TEST(EnergyBest, LeastEnergyAmongTheNearlyFastest) {
  const Study study = make_studies(canonical_content(frugal())).at(0);
  const Best best = find_best(study, 0.05, metric("energy"));
  EXPECT_EQ(best.best.name, "4 replicas");
  EXPECT_EQ(best.smallest.name, "2 replicas");
  EXPECT_NEAR(best.smallest.amount_over_best.estimate.value, 51.5 * 180 / (50 * 250), 1e-9);
  const std::string text = best_text(study, best);
  expect_parts(text, {"the point of least energy within 5 %", "2.578 Wh  -25.8 %"});
  expect_no_parts(text, {"are not enough"});
  // Everything is near enough: one replica takes most.
  EXPECT_EQ(find_best(study, 2, metric("energy")).smallest.name, "2 replicas");
  EXPECT_EQ(Json::parse(to_json_text(best_document(study, best)))["least"], "energy");
}

// Four replicas are twice as fast and take less, but only one of their runs has a meter.
TEST(EnergyBest, AFasterPointWithoutAMeterIsNamed) {
  std::vector<Json> records = frugal();
  for (Json& record : records) {
    if (record["layout"]["gpus"] != 4) continue;
    record["timing"]["fit_seconds"] = 25.0;
    if (record["round"] == 1) {
      record["energy"]["joules"] = 100.0;
    } else {
      record["energy"].erase("joules");
    }
  }
  const Study study = make_studies(canonical_content(records)).at(0);
  const std::string text = best_text(study, find_best(study, 0.05, metric("energy")));
  expect_parts(text, {"fastest of the points with energy by the same meters in each run: 2 "
                      "replicas: 51.",
                      "left aside: 1 point without a figure of energy for each run; of these "
                      "faster: 4 replicas: 25 s"});
}

TEST(EnergyBest, PointsThatCannotBeComparedAreLeftAside) {
  std::vector<Json> records = frugal();
  for (Json& record : records) {
    if (record["layout"]["gpus"] == 2) record["energy"]["covers"] = "GPUs";
    if (record["layout"]["gpus"] == 1) record["energy"].erase("joules");
  }
  const Study study = make_studies(canonical_content(records)).at(0);
  const Best best = find_best(study, 0.05, metric("energy"));
  EXPECT_EQ(best.points.size() + best.left_aside.size(), 3U);
  EXPECT_EQ(best.points.size(), 1U);
  const Study unmetered = make_studies(canonical_content(drifting_study())).at(0);
  EXPECT_THROW(find_best(unmetered, 0.05, metric("energy")), Error);
  EXPECT_THROW(find_best(unmetered, 0.05, metric("gpu-hours")), Error);
  const Best hours = find_best(unmetered, 0.05, metric("core-hours"));
  EXPECT_EQ(hours.smallest.name, "2 replicas");
  const Cell amount = testing::cell(best_document(unmetered, hours).sections.front(), 0, "amount");
  EXPECT_EQ(amount.text.find("core-hours"), std::string::npos) << "the heading has the unit";
}

}  // namespace
}  // namespace paceline

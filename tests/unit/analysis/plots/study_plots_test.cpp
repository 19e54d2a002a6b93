#include "analysis/plots/study_plots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "analysis/plots/script.h"
#include "analysis/study/labels.h"
#include "engine/facts/timing.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

// Keeps what the plots point into.
struct Made : testing::Compared {
  std::vector<Plot> plots;

  explicit Made(const std::vector<Json>& records, const std::vector<ExpectedRuns>& wanted = {})
      : Compared(make_studies(canonical_content(records), {}, wanted).at(0)),
        plots(study_plots({study, comparison, facts, "a title"})) {}

  const Plot* find(const std::string& name) const {
    for (const Plot& plot : plots) {
      if (plot.name == name) return &plot;
    }
    return nullptr;
  }
};

std::vector<std::string> point_names(const std::vector<Plot>& plots) {
  std::vector<std::string> names;
  for (const Plot& plot : plots) names.push_back(plot.name);
  return names;
}

TEST(StudyPlots, AreOnlyThoseThatTheDataFill) {
  EXPECT_EQ(point_names(Made(drifting_study()).plots),
            (std::vector<std::string>{"speedup", "efficiency", "breakdown"}));
  Json bare = sample_record();
  bare.erase("phases");
  EXPECT_TRUE(Made(std::vector<Json>{bare}).plots.empty());
}

TEST(StudyPlots, SpeedUpAndEfficiencyHaveBarsIdealAndGaps) {
  const Made made(drifting_study(), {{"quick", "mnist-cnn", 3, {planned_point(4)}}});
  const auto& speed_up = std::get<Lines>(made.find("speedup")->body);
  ASSERT_EQ(speed_up.series.size(), 1U);
  const auto& points = speed_up.series[0].points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_NEAR(*points[1].y, 1.8, 1e-3);
  EXPECT_LT(points[1].interval->low, 1.8);
  ASSERT_EQ(points[1].runs.size(), made.study.rows[1].runs.size());
  EXPECT_LT(*std::ranges::min_element(points[1].runs), *points[1].y);
  EXPECT_GT(*std::ranges::max_element(points[1].runs), *points[1].y);
  EXPECT_EQ(points[2].x, 4);
  EXPECT_FALSE(points[2].y);
  EXPECT_EQ(speed_up.ideal->points.back().y, 4);
  const auto& efficiency = std::get<Lines>(made.find("efficiency")->body);
  EXPECT_NEAR(*efficiency.series[0].points[1].y, 90, 0.1);
  EXPECT_EQ(efficiency.ideal->points.back().y, 100);
  EXPECT_EQ(std::get<Bars>(made.find("breakdown")->body).notes.back(), "not run");
}

TEST(StudyPlots, ManyReplicasStandOnALogarithmicAxis) {
  std::vector<Json> records;
  for (const int gpus : {1, 8, 64, 512}) {
    Json json = sample_record({.gpus = gpus, .fit_seconds = 600.0 / gpus});
    json["phases"] = nullptr;
    records.push_back(json);
  }
  const Made made(records);
  const auto& lines = std::get<Lines>(made.find("speedup")->body);
  EXPECT_TRUE(lines.log_x);
  EXPECT_EQ(lines.log_y, 2);
  EXPECT_EQ(lines.x_tics.size(), 4U);
}

// Sums of seconds over sums of steps: the phases of a stack add up to the step.
TEST(StudyPlots, TheBreakdownAddsUpToTheMeanStep) {
  const Made made(drifting_study());
  const auto& bars = std::get<Bars>(made.find("breakdown")->body);
  ASSERT_EQ(bars.groups, (std::vector<std::string>{"1 replica", "2 replicas"}));
  double seconds = 0, steps = 0;
  for (const auto& run : made.study.rows[1].runs) {
    seconds += run.phase_sum->step;
    steps += run.phase_ranks * *run.steps();
  }
  double sum = 0;
  for (const BarSeries& series : bars.series) sum += series.bars[1]->value;
  EXPECT_NEAR(sum, 1e3 * seconds / steps, 1e-9 * sum);
  EXPECT_TRUE(bars.stacked);
  ASSERT_EQ(bars.series.size(), 5U);  // nothing is "other" here
  EXPECT_EQ(bars.series[2].name, "backward");
  EXPECT_EQ(bars.series[3].name, "communication (exposed)");  // as a step has them
  EXPECT_EQ(bars.series[3].colour, 1U);
}

TEST(StudyPlots, CpusMakeAHeatMapWithItsHoles) {
  std::vector<Json> records;
  for (const auto& [gpus, cpus, seconds] : {std::tuple{1, 1, 20.0}, {1, 2, 12.0}, {2, 1, 10.0}}) {
    records.push_back(
        sample_record({.gpus = gpus, .cpus_per_replica = cpus, .fit_seconds = seconds}));
  }
  const Made made(records);
  const auto& map = std::get<HeatMap>(made.find("cpus")->body);
  EXPECT_EQ(map.columns, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(map.rows, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(map.cells[0][0]->detail, "+66.7 %");
  EXPECT_EQ(map.cells[0][1]->detail, "best");
  EXPECT_GT(map.cells[0][0]->heat, map.cells[0][1]->heat);
  EXPECT_FALSE(map.cells[1][1]);
}

TEST(StudyPlots, BackendsOfTheSameSizeStandTogether) {
  std::vector<Json> records = drifting_study();
  for (int round = 1; round <= 3; ++round) {
    records.push_back(sample_record(
        {.gpus = 2, .repeat = round, .fit_seconds = 12.0 + round, .backend = "gloo"}));
  }
  const Made made(records);
  const auto& bars = std::get<Bars>(made.find("backends")->body);
  EXPECT_EQ(bars.groups, std::vector<std::string>{"2 replicas, 1 CPU each"});
  ASSERT_EQ(bars.series.size(), 2U);
  EXPECT_EQ(bars.series[0].name, "gloo");
  EXPECT_TRUE(bars.series[0].bars[0]->interval);
}

TEST(StudyPlots, BackendsOfEachMachineAndSettingHaveBars) {
  std::vector<Json> records;
  for (const char* cpu : {"AMD EPYC 9654 96-Core Processor", "Intel(R) Xeon(R) 8480+"}) {
    for (const int bucket_mb : {1, 8}) {
      for (const char* backend : {"mpi", "gloo"}) {
        for (int round = 1; round <= 3; ++round) {
          Json json = sample_record(
              {.gpus = 2, .repeat = round, .fit_seconds = 12.0 + 0.1 * round, .backend = backend});
          json["provenance"]["cpu_model"] = cpu;
          json["parameters"]["bucket_mb"] = bucket_mb;
          json["session"] = std::string(cpu) + std::to_string(bucket_mb);
          records.push_back(json);
        }
      }
    }
  }
  const Made made(records);
  const auto& bars = std::get<Bars>(made.find("backends")->body);
  EXPECT_EQ(bars.groups,
            (std::vector<std::string>{"AMD EPYC 9654, bucket_mb 1, 2 replicas, 1 CPU each",
                                      "AMD EPYC 9654, bucket_mb 8, 2 replicas, 1 CPU each",
                                      "Intel Xeon 8480+, bucket_mb 1, 2 replicas, 1 CPU each",
                                      "Intel Xeon 8480+, bucket_mb 8, 2 replicas, 1 CPU each"}));
}

// What a script says of its lines: colours, dashes and names.
std::vector<std::string> drawn_lines(const Plot& plot) {
  std::vector<std::string> found;
  const std::string script = plot_script(plot, "svg");
  const std::regex line(
      "with linespoints linecolor rgb '(#[0-9a-f]+)'[^']*?( dashtype \\S+)? title '(.*)'");
  for (std::sregex_iterator it(script.begin(), script.end(), line), end; it != end; ++it) {
    found.push_back((*it)[1].str() + (*it)[2].str() + " " + (*it)[3].str());
  }
  return found;
}

TEST(StudyPlots, LinesOfTwoMachinesHaveTheColoursOfTheirBackends) {
  std::vector<Json> records;
  for (const char* cpu : {"AMD EPYC 9654 96-Core Processor", "Intel(R) Xeon(R) 8480+"}) {
    for (const char* backend : {"mpi", "gloo"}) {
      for (const int gpus : {1, 2, 4}) {
        for (const int bucket_mb : {1, 2, 8}) {
          Json json = sample_record(
              {.gpus = gpus, .fit_seconds = 12.0 / gpus + 0.1 * bucket_mb, .backend = backend});
          json["provenance"]["cpu_model"] = cpu;
          json["parameters"]["bucket_mb"] = bucket_mb;
          json["session"] = cpu;
          json["timing"]["epoch_seconds"] = {6.0 / gpus, 6.0 / gpus};
          records.push_back(json);
        }
      }
    }
  }
  const Made made(records);
  const std::string blue = "#0072b2", dash = " dashtype (7,4)";
  for (const char* name : {"setting-bucket_mb", "speedup", "efficiency"}) {
    const Plot* plot = made.find(name);
    ASSERT_NE(plot, nullptr) << name;
    std::map<std::string, std::set<std::string>> colours;  // by what stands behind the machine
    for (const std::string& line : drawn_lines(*plot)) {
      const bool is_second = line.find("Intel Xeon 8480+, ") != std::string::npos;
      EXPECT_EQ(line.find(dash) != std::string::npos, is_second) << name << ": " << line;
      colours[line.substr(line.rfind(is_second ? "8480+" : "9654") + (is_second ? 5 : 4))].insert(
          line.substr(0, blue.size()));
    }
    EXPECT_GE(colours.size(), 2U) << name;
    std::set<std::string> all;
    for (const auto& [backend, of_backend] : colours) {
      EXPECT_EQ(of_backend.size(), 1U) << name << backend;
      all.insert(of_backend.begin(), of_backend.end());
    }
    EXPECT_EQ(all.size(), colours.size()) << name;
  }
}

TEST(StudyPlots, EpochsAreMeansOverRuns) {
  std::vector<Json> records = drifting_study();
  for (Json& json : records) {
    const double fit = json["timing"]["fit_seconds"];
    json["timing"]["epoch_seconds"] = {fit * 0.6, fit * 0.4};
  }
  const Made made(records);
  const auto& lines = std::get<Lines>(made.find("epochs")->body);
  ASSERT_EQ(lines.series.size(), 2U);
  ASSERT_EQ(lines.series[0].points.size(), 2U);
  EXPECT_NEAR(*lines.series[0].points[0].y / *lines.series[0].points[1].y, 1.5, 1e-9);
  EXPECT_TRUE(lines.series[0].points[0].interval);
}

TEST(StudyPlots, BandwidthIsOfTheBus) {
  const Json json = {
      {"schema", 3},
      {"kind", "collective"},
      {"status", "completed"},
      {"repeat", 1},
      {"attempt", 1},
      {"parameters", Json::object()},
      {"layout", {{"gpus", 4}}},
      {"provenance", {{"backend_requested", "mpi"}}},
      {"collective",
       {{"library", "MPI_Allreduce"},
        {"rows",
         {{{"bytes", 1024}, {"count", 256}, {"seconds", 1e-6}},
          {{"bytes", 4096}, {"count", 1024}, {"seconds", 2e-6}, {"library_seconds", 4e-6}}}}}}};
  std::vector<Record> records = {Record(json, "here")};
  const auto plots = bandwidth_plots(records);
  ASSERT_EQ(plots.size(), 1U);
  const auto& lines = std::get<Lines>(plots[0].body);
  ASSERT_EQ(lines.series.size(), 1U);  // the library has one size only
  EXPECT_EQ(lines.series[0].name, "mpi, 4 ranks");
  EXPECT_DOUBLE_EQ(*lines.series[0].points[0].y, 1024 / 1e-6 * 1.5 / 1e9);
  EXPECT_TRUE(lines.log_x);
  Json there = json;
  records.clear();
  for (const char* cpu : {"AMD EPYC 9654", "AMD EPYC 7B13"}) {
    there["provenance"]["cpu_model"] = cpu;
    records.emplace_back(there, cpu);
  }
  const auto of_two = drawn_lines(bandwidth_plots(records).at(0));
  EXPECT_EQ(of_two,
            (std::vector<std::string>{"#0072b2 AMD EPYC 9654, mpi, 4 ranks",
                                      "#0072b2 dashtype (7,4) AMD EPYC 7B13, mpi, 4 ranks"}));
}

}  // namespace
}  // namespace paceline

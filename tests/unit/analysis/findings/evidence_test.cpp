// A sentence is said only of what the runs know: not of a missing interval, of a sum that hides its
// parts, or of a cause that the phases contradict.
#include <gtest/gtest.h>

#include "analysis/explain/explain.h"
#include "analysis/findings/best.h"
#include "tests/laboratory/records.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/samples.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

using laboratory::StepLaw;

struct Said {
  std::string report, explain;
  std::vector<FindingKind> kinds;
  bool has(FindingKind kind) const { return std::ranges::find(kinds, kind) != kinds.end(); }
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Said collect_statements(const StoreContent& content) {
  Said said;
  for (const Explanation& each : explain(content, Base::matched)) {
    said.explain += explanation_text(each, 1000);
    for (const Finding& finding : findings(each.study, each.comparison, each.facts)) {
      said.report += finding.text + '\n';
      said.kinds.push_back(finding.kind);
    }
  }
  return said;
}

StoreContent make_study(const StepLaw& law, double noise = 0.005, int runs = 5,
                        const std::vector<int>& sizes = {1, 2, 4, 8},
                        Scaling scaling = Scaling::fixed_epochs) {
  return laboratory::make_content(law.law(scaling), {.sizes = sizes, .runs = runs},
                                  laboratory::of_runs(noise), 11);
}

// As a sweep until a precision leaves it: a base of three runs, which have no anytime-valid ratio.
TEST(Evidence, AMissingIntervalMakesNoVerdict) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4}) {
    for (int repeat = 1; repeat <= (gpus == 1 ? 3 : 5); ++repeat) {
      const double seconds = 100.0 / gpus * (1 + 0.3 * (gpus - 1)) * (1 + 0.002 * repeat);
      records.push_back(sample_record({.gpus = gpus, .repeat = repeat, .fit_seconds = seconds}));
      records.back()["flags"]["sequential"] = true;
    }
  }
  const StoreContent content = canonical_content(records);
  const Said said = collect_statements(content);
  EXPECT_FALSE(said.has(FindingKind::no_loss) || said.has(FindingKind::hidden_loss)) << said.report;
  EXPECT_TRUE(said.has(FindingKind::unjudged));
  expect_parts(said.report, {"rows of too few runs for an anytime-valid interval cannot show"});
  expect_no_parts(said.explain, {"[0.0, 0.0]"});
  expect_parts(said.explain, {"how much of it is noise is not known (too few runs for an "
                              "anytime-valid interval)"});
  const Study study = make_studies(content).at(0);
  const Best best = find_best(study, 0.05);
  EXPECT_TRUE(best.alike.size() < 2);
  expect_parts(best_text(study, best), {"too few runs for an anytime-valid interval"});
  expect_no_parts(best_text(study, best), {"fewer than 3 runs"});
}

// A slow base gives what communication takes: all in all there is no loss.
TEST(Evidence, PartsThatCancelAreEachReported) {
  StepLaw law;
  law.slow_base = 0.21;
  law.communication = [](double n) { return 0.03 * (n - 1); };
  const Said said = collect_statements(make_study(law));
  EXPECT_TRUE(said.has(FindingKind::hidden_loss)) << said.report;
  EXPECT_FALSE(said.has(FindingKind::no_loss)) << said.report;
  expect_parts(
      said.report,
      {"communication or straggler costs 17.", "on 8 replicas; the base takes 1.21 [",
       "times as long to compute a sample, which hides it: 2, 4 replicas are above ideal"});
  expect_parts(said.explain, {"which cannot be distinguished from noise, but parts of it can: "
                              "communication or straggler costs 17.",
                              "compute gives 17."});
}

TEST(Evidence, GainsListTheirPartsAndAreNoNegativeLosses) {
  StepLaw law;
  law.slow_base = 0.3;
  law.communication = [](double) { return 0.05; };
  const Said said = collect_statements(make_study(law, 0.005, 5, {1, 2, 4}));
  expect_parts(said.explain, {"points of efficiency are gained [", "]: compute ",
                              "communication or straggler -"});
  expect_no_parts(said.explain, {"-5"});
  expect_no_parts(collect_statements(make_study(StepLaw{}, 0.05)).explain, {": -"});
}

TEST(Evidence, ListedPartsAddUp) {
  const Interval any{0, 1};
  const std::vector<Loss> parts = {{"input", Judged(0.050, any)},
                                   {"communication", Judged(0.042, any)},
                                   {"launch", Judged(0.039, any)},
                                   {"compute", Judged(0.0015, any)}};
  EXPECT_EQ(parts_text(parts, 0.1325),
            "input 5.0 [0.0, 100.0], communication 4.2 [0.0, 100.0], launch 3.9 [0.0, 100.0], "
            "others 0.2");
}

// Phases that are longer than the run they are of: a part is then more than all, and others less
// than nothing.
TEST(Evidence, PartsAddUpWherePhasesContradictTheWhole) {
  const Study study = make_studies(make_study(StepLaw{})).at(0);
  const Row &base = study.rows.at(0), &row = study.rows.at(1);
  const std::vector<Costs> of_base(base.runs.size(), Costs{.compute = 1}),
      of_row(row.runs.size(), Costs{.communication = 2, .compute = 0.5, .outside = -1});
  const LossParts parts(base, of_base, row, of_row, true);
  double sum = 0, most = 0;
  for (const Loss& part : parts.parts()) {
    sum += part.share.value();
    most = std::max(most, part.share.value());
  }
  EXPECT_NEAR(sum, parts.all().value(), 1e-9);
  EXPECT_NEAR(parts.all().value(), 1.0 / 3, 1e-9);
  EXPECT_NEAR(most, 2 / 1.5, 1e-9);
}

// A fixed time a run, serial input and communication look alike in times; the phases do not.
TEST(Evidence, PhasesSpeakBeforeCauses) {
  const auto said = [](auto change) {
    StepLaw law;
    change(law);
    const Said all = collect_statements(make_study(law));
    EXPECT_TRUE(all.has(FindingKind::steady)) << all.report;
    EXPECT_FALSE(all.has(FindingKind::causes_alike)) << all.report;
    expect_no_parts(all.explain, {"the cause may be "});
    expect_parts(all.report, {"the loss grows as if each added replica cost "});
    return all.report;
  };
  const std::string run = said([](StepLaw& law) { law.per_run = 0.25; });
  expect_parts(run, {"points of efficiency: outside of steps 5"});
  const std::string input = said([](StepLaw& law) { law.per_sample = 0.15; });
  expect_parts(input, {"points of efficiency: input 4"});
  const std::string ring =
      said([](StepLaw& law) { law.communication = [](double n) { return 0.1 * (n - 1); }; });
  expect_parts(ring, {"points of efficiency: communication or straggler 41."});
}

TEST(Evidence, ARingInStrongScalingIsNoWorkThatIsNotDivided) {
  StepLaw law;
  law.communication = [](double n) { return 0.1 * (n - 1) / n; };
  const Said said = collect_statements(make_study(law, 0.002, 5, {1, 2, 4, 8}, Scaling::strong));
  expect_parts(said.report,
               {"the loss is as if 10", "of the base's time were not divided among replicas"});
  expect_no_parts(said.report, {"the undivided share"});
  expect_parts(said.report, {"points of efficiency: communication or straggler 4"});
}

TEST(Evidence, ARemainingBoundNamesItsSize) {
  std::vector<Json> records;
  for (const int gpus : {1, 2, 4}) {
    for (int round = 1; round <= 5; ++round) {
      const double seconds =
          100.0 / gpus * (1 + 0.004 * round) * (gpus == 2 && round == 3 ? 20 : 1);
      records.push_back(sample_record({.gpus = gpus, .repeat = round, .fit_seconds = seconds}));
    }
  }
  const std::string report = collect_statements(canonical_content(records)).report;
  EXPECT_TRUE(holds(
      report,
      "no loss beyond the noise, which may hide up to 89.6 points of efficiency on 2 replicas"))
      << report;
}

TEST(Evidence, KarpFlattHasItsInterval) {
  StepLaw law;
  law.communication = [](double n) { return 0.1 * (n - 1); };
  const std::string report = collect_statements(make_study(law, 0.01)).report;
  const auto at = report.find(", Karp-Flatt 0.");
  ASSERT_NE(at, std::string::npos) << report;
  EXPECT_TRUE(holds(report.substr(at, 60), " [0.0")) << report;
}

// Rank 1 is 20 % slower than rank 0, which waits for it. POP splits that among straggler and
// compute; mending the rank gives back both.
TEST(Evidence, AMendedStragglerGivesBackBothParts) {
  std::vector<Json> records;
  for (int round = 1; round <= 4; ++round) {
    const double factor = 1 + 0.003 * round;
    const auto rank = [&](double compute, double wait) {
      return Json{{"input", 0},         {"forward", compute * factor},
                  {"backward", 0},      {"communication", wait * factor},
                  {"update", 0},        {"other", 0},
                  {"step", 60 * factor}};
    };
    Json one = sample_record({.repeat = round, .fit_seconds = 100 * factor});
    one["phases"] = {rank(100, 0)};
    one["phases"][0]["step"] = 100 * factor;
    Json two = sample_record({.gpus = 2, .repeat = round, .fit_seconds = 60 * factor});
    two["phases"] = {rank(50, 10), rank(60, 0)};
    two["straggler"] = {{"rank", 1},
                        {"host", "vm"},
                        {"phase", "forward"},
                        {"excess_seconds_per_step", 0.1},
                        {"share_of_step", 0.166}};
    records.push_back(one);
    records.push_back(two);
  }
  const std::string text = collect_statements(canonical_content(records)).explain;
  expect_parts(text, {"16.7 points of efficiency are lost", "straggler 8.3",
                      "as fast as the next slowest rank, it would give about 16.7 ["});
}

// On a second node 20 % is lost at every size: no size loses more than another.
TEST(Evidence, LayoutsOfOneSizeHaveNamesAndTrendsOfTheirOwn) {
  std::vector<Json> records;
  const double noise[] = {1, 1.002, 0.998};
  for (const auto& [gpus, nodes] :
       std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {8, 2}}) {
    for (int repeat = 1; repeat <= 3; ++repeat) {
      const double seconds = 240.0 / gpus * (nodes > 1 ? 1.2 : 1) * noise[(repeat + gpus) % 3];
      records.push_back(sample_record({.gpus = gpus, .repeat = repeat, .fit_seconds = seconds}));
      records.back().erase("phases");
      records.back()["layout"]["nodes"] = nodes;
    }
  }
  const std::string text = full_text(report_document({report_section(records)}));
  expect_parts(text, {"2 replicas on 1 node ", "2 replicas on 2 nodes ", "4 replicas on 2 nodes ",
                      "8 replicas ", "mpi, 1 node: speed-up 2.00 / 4.00 for 2, 4 replicas",
                      "mpi, 2 nodes: speed-up 1.67 / 3.33 / 6.67 for 2, 4, 8 replicas"});
  expect_no_parts(text, {"more than in proportion", "8 replicas on"});
  std::erase_if(records, [](const Json& record) {
    return record["layout"]["gpus"] != 8 && record["layout"]["nodes"] == 2;
  });
  expect_parts(full_text(report_document({report_section(records)})),
               {"on 2 (1 node) and by", "on 8 replicas (2 nodes): more than in proportion"});
}

}  // namespace
}  // namespace paceline

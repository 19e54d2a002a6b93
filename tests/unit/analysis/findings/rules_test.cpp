#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/findings/findings.h"
#include "analysis/report.h"
#include "engine/core/random.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

// Nothing to complain of: six rounds of one and two replicas, all of it stated.
std::vector<Json> good_study() {
  std::vector<Json> records;
  const double noise[] = {1.001, 0.999, 1.002, 0.998, 1.0005, 0.9995};
  for (int round = 1; round <= 6; ++round) {
    for (const int gpus : {1, 2}) {
      Json json = sample_record(
          {.gpus = gpus, .repeat = round, .fit_seconds = 9.38 / gpus * noise[(round + gpus) % 6]});
      auto& provenance = json["provenance"];
      provenance["compiler"] = "GNU 12";
      provenance["libraries"] = "oneDNN";
      provenance["backend_used"] = "shared memory";
      provenance["data_set"] = "mnist";
      json["probe"] = {{"flops_per_second", 1e11}};
      records.push_back(json);
    }
  }
  return records;
}

std::vector<BrokenRule> broken_by(const std::vector<Json>& records,
                                  const std::vector<Selection>& only = {},
                                  const Base& base = Base::matched, bool pool = false) {
  const auto pooling = pool ? Pooling::always : Pooling::by_sessions;
  const auto [study, comparison, facts] =
      Compared(make_studies(canonical_content(records), only, {}, pooling).at(0), base);
  return broken_rules(study, comparison, facts);
}

std::set<int> numbers(const std::vector<BrokenRule>& broken) {
  std::set<int> rules;
  for (const BrokenRule& each : broken) rules.insert(each.rule);
  return rules;
}

// The rules that a change of the good study breaks.
template <typename Change>
std::set<int> broken_after(Change change) {
  std::vector<Json> records = good_study();
  change(records);
  return numbers(broken_by(records));
}

TEST(Rules, AGoodStudyKeepsAllTwelve) {
  const auto broken = broken_by(good_study());
  for (const BrokenRule& each : broken) ADD_FAILURE() << format_sentence(each);
  EXPECT_EQ(summarize(broken),
            "Rules of Hoefler and Belli (SC15): 12 rules were checked, none is broken");
}

// Programs side by side are different files.
TEST(Rules, NineWantsOneBuildOfEachProgram) {
  std::vector<Json> records;
  const auto mixes_builds = [&] {
    return std::ranges::any_of(broken_by(records), [](const BrokenRule& each) {
      return format_sentence(each).find("several builds") != std::string::npos;
    });
  };
  for (const std::string program : {"fast", "slow"}) {
    for (Json record : good_study()) {
      record["parameters"]["program"] = program + "@3f9a12cd3f9a12cd";
      record["provenance"]["program"] = {{"name", program}, {"files_hash", program}};
      records.push_back(record);
    }
  }
  EXPECT_FALSE(mixes_builds());
  records.back()["provenance"]["program"]["files_hash"] = "edited";
  EXPECT_TRUE(mixes_builds());
}

TEST(Rules, NineNamesAMachineOfATableOfTwo) {
  std::vector<Json> records = good_study();
  for (Json record : good_study()) {
    record["provenance"]["cpu_model"] = "Another CPU";
    record["session"] = "another";
    records.push_back(record);
  }
  const std::vector<BrokenRule> broken = broken_by(records);
  const auto nine = std::find_if(broken.begin(), broken.end(),
                                 [](const BrokenRule& each) { return each.rule == 9; });
  ASSERT_NE(nine, broken.end());
  expect_parts(format_sentence(*nine), {"--only 'system=A"});
}

TEST(Rules, EachIsBrokenByItsOwnFault) {
  const auto drop = [](std::vector<Json>& records, auto condition) {
    std::erase_if(records, condition);
  };
  using Records = std::vector<Json>;
  EXPECT_TRUE(broken_after([&](Records& r) {
                drop(r, [](const Json& j) { return j["layout"]["gpus"] == 1; });
                r.push_back(sample_record({.gpus = 1, .cpus_per_replica = 2}));
              }).contains(1));
  EXPECT_TRUE(numbers(broken_by(good_study(), {{"backend", {"mpi"}}})).contains(2));
  EXPECT_EQ(broken_after([](Records& r) {
              for (int i = 0; i < 6; i += 2) {
                Json& time = r[static_cast<std::size_t>(i)]["timing"]["fit_seconds"];
                time = time.get<double>() * 1.5;
              }
            }),
            (std::set<int>{3}));
  EXPECT_EQ(broken_after([](Records& r) {
              double seconds = 8;
              for (Json& json : r) {
                json["utilization"] = 0.9;
                if (json["layout"]["gpus"] == 1) json["timing"]["fit_seconds"] = seconds += 0.25;
              }
            }),
            (std::set<int>{4}));
  EXPECT_EQ(
      broken_after([&](Records& r) { drop(r, [](const Json& j) { return j["repeat"] > 1; }); }),
      (std::set<int>{5, 7}));
  EXPECT_EQ(
      broken_after([&](Records& r) { drop(r, [](const Json& j) { return j["repeat"] > 3; }); }),
      (std::set<int>{6}));
  EXPECT_EQ(broken_after([](Records& r) {
              for (Json& json : r) json["timing"]["step_seconds"][0]["p50"] = 0.001;
            }),
            (std::set<int>{8}));
  EXPECT_EQ(broken_after([](Records& r) { r[3]["provenance"].erase("compiler"); }),
            (std::set<int>{9}));
  EXPECT_EQ(broken_after([](Records& r) { r[3]["provenance"]["cpu_model"] = "Another CPU"; }),
            (std::set<int>{1, 5, 9}))
      << "its row is its own then, of one run and without a base";
  EXPECT_EQ(broken_after([](Records& r) {
              for (Json& json : r) {
                if (json["layout"]["gpus"] == 2)
                  json["timing"]["fit_seconds"] = 3 + 0.001 * json["round"].get<int>();
              }
            }),
            (std::set<int>{11}));
  EXPECT_EQ(broken_after([](Records& r) { r[3].erase("probe"); }), (std::set<int>{11}));
  EXPECT_TRUE(broken_after([](Records& r) {
                for (Json& json : r) {
                  if (json["layout"]["gpus"] != 2) continue;
                  json["layout"]["gpus"] = 8;
                  json["parameters"]["gpus"] = 8;
                  json["layout"]["ntasks"] = 8;
                }
              }).contains(12));
}

std::string collect_statements(int rule, const std::vector<BrokenRule>& broken) {
  std::string text;
  for (const BrokenRule& each : broken) {
    if (each.rule == rule) text += format_sentence(each) + "; ";
  }
  return text;
}

TEST(Rules, ARowThatIsItsOwnBaseIsNotCompared) {
  std::vector<Json> records;
  for (Json json : good_study()) {
    if (json["layout"]["gpus"] != 2) continue;
    for (const int bucket : {1, 8}) {
      json["parameters"]["bucket_mb"] = bucket;
      records.push_back(json);
    }
  }
  EXPECT_EQ(collect_statements(7, broken_by(records, {}, Base("bucket_mb", "1"))), "");
}

TEST(Rules, DisturbedRunsAndSessionsAreNotCalledFewRuns) {
  std::vector<Json> records = good_study();
  for (Json& json : records) json["flags"]["throttled"] = json["layout"]["gpus"] == 2;
  EXPECT_EQ(collect_statements(7, broken_by(records)),
            "rule 7: 1 speed-up cannot be judged against noise (only disturbed runs); run the row "
            "and its base again undisturbed; ");
  EXPECT_EQ(collect_statements(7, broken_by(good_study(), {}, Base::matched, true)),
            "rule 7: 1 speed-up cannot be judged against noise (fewer than 2 sessions or 3 runs); "
            "run 3 sessions or more of the row and of its base; ");
  EXPECT_EQ(collect_statements(5, broken_by(good_study(), {}, Base::matched, true)),
            "rule 5: 2 of 2 rows have one session, so no interval; run 3 sessions or more; ");
}

TEST(Rules, RoundingLiesAboveNoIdealLine) {
  std::vector<Json> records = good_study();
  for (Json& json : records) {
    json["timing"]["fit_seconds"] = 10.0 / json["layout"]["gpus"].get<int>();
    if (json["layout"]["gpus"] == 2) json["session"] = "s2";
  }
  records.push_back(records[1]);
  EXPECT_EQ(collect_statements(11, broken_by(records)), "");
}

TEST(Rules, NoBaseIsAdvisedThatIsInUse) {
  std::vector<Json> records = good_study();
  for (Json& json : records) {
    if (json["layout"]["gpus"] == 2) json["timing"]["fit_seconds"] = 3.0;
  }
  expect_parts(collect_statements(11, broken_by(records)), {"--base best"});
  const std::string best = collect_statements(11, broken_by(records, {}, Base::best));
  expect_parts(best, {"above the ideal line"});
  expect_no_parts(best, {"--base best"});
}

TEST(Rules, ARowThatDidNotReachItsGoalMissesNoBase) {
  std::vector<Json> records = good_study();
  for (Json& json : records) {
    json["quality"]["until"] = {{"goal", "test_accuracy>=0.98"},
                                {"reached", json["layout"]["gpus"] == 1}};
  }
  EXPECT_EQ(collect_statements(1, broken_by(records)), "");
}

TEST(Rules, APublishedPageIsHeldToThemToo) {
  std::ostringstream stream;
  ReportOptions options;
  options.format = Format::markdown;
  write_report({std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference/cassava-resnet50"},
               options, stream);
  expect_parts(stream.str(), {"rule 5: 14 of 14 rows have one run", " of 12 broken\n"});
}

TEST(Rules, NormalityDistinguishesNormalValues) {
  RandomSequence random(7, Stream::order, 0);
  int normal_rejected = 0, bimodal_accepted = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> normal, bimodal;
    for (int i = 0; i < 20; ++i) {
      normal.push_back(random.normal());
      bimodal.push_back(random.uniform() * 0.1 + (i % 4 == 0 ? 5 : 0));
    }
    normal_rejected += normality(normal) < 0.05 ? 1 : 0;
    bimodal_accepted += normality(bimodal) >= 0.01 ? 1 : 0;
  }
  EXPECT_LT(normal_rejected, kTrials * 0.10);
  EXPECT_GT(normal_rejected, kTrials * 0.01);
  EXPECT_EQ(bimodal_accepted, 0);
  EXPECT_EQ(normality({2, 2, 2, 2, 2}), 1);
  EXPECT_EQ(normality({2, 2 + 1e-15, 2, 2, 2 - 1e-15}), 1) << "rounding is no second mode";
}

}  // namespace
}  // namespace paceline

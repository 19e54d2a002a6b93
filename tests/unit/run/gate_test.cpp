#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/launch/program.h"
#include "run/gate_runs.h"
#include "tests/support/expect_error.h"
#include "tests/support/has_engine.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

TEST(GateRequestTest, ContradictionsNameTheirOption) {
  const auto stored = [] {
    GateRequest request;
    request.baseline = {"a"};
    request.current = {"b"};
    return request;
  };
  const auto fresh = [] {
    GateRequest request;
    request.ab = {"old", "new", "spec"};
    return request;
  };
  check_request(stored());
  check_request(fresh());
  struct Row {
    GateRequest request;
    void (*change)(GateRequest&);
    std::vector<std::string> parts;
  };
  const std::string no_effect = "no effect without fresh runs", for_fresh = "is for --ab and --aa";
  for (Row row : {
           Row{{}, [](auto&) {}, {"nothing to compare", "--ab OLD NEW SPEC"}},
           Row{stored(), [](auto& r) { r.aa = "spec"; }, {"several kinds of gate"}},
           Row{fresh(), [](auto& r) { r.aa = "spec"; }, {"several kinds of gate"}},
           Row{stored(), [](auto& r) { r.current.clear(); }, {"there is no --current", "both"}},
           Row{stored(), [](auto& r) { r.baseline.clear(); }, {"there is no --baseline"}},
           Row{stored(), [](auto& r) { r.runs.out = "x"; }, {"--out", no_effect}},
           Row{stored(), [](auto& r) { r.has_rounds = true; }, {"--rounds", no_effect}},
           Row{stored(), [](auto& r) { r.runs.until_decided = true; }, {"--until-d", no_effect}},
           Row{stored(), [](auto& r) { r.runs.data = "x"; }, {"--data", no_effect}},
           Row{stored(), [](auto& r) { r.runs.timeout_seconds = 1; }, {"--timeout", no_effect}},
           Row{stored(), [](auto& r) { r.current_program = "x"; }, {"--current-b", no_effect}},
           Row{fresh(), [](auto& r) { r.has_most_rounds = true; }, {"--max-rounds", "--until-d"}},
           Row{fresh(), [](auto& r) { r.force = true; }, {"--force", "share a machine"}},
           Row{stored(), [](auto& r) { r.runs.control = true; }, {"--control", for_fresh}},
           Row{stored(), [](auto& r) { r.runs.set = {"a=1"}; }, {"--set", for_fresh}},
       }) {
    row.change(row.request);
    expect_error(ErrorKind::usage, row.parts, [&] { check_request(row.request); });
  }
  GateRequest rerun = stored();
  rerun.rerun = "old";
  rerun.runs.out = "x";
  rerun.has_rounds = true;
  check_request(rerun);
}

// Google Benchmark's JSON, five runs of one benchmark a side.
class StoredGate : public ::testing::Test {
 protected:
  StoredGate() {
    write("old", 1.0, "a");
    write("same", 1.0001, "a");
    write("slow", 1.5, "a");
    write("elsewhere", 1.0001, "b");
  }
  std::string file(const std::string& name) const { return (scratch_ / (name + ".json")).string(); }
  void write(const std::string& name, double seconds, const std::string& host) const {
    nlohmann::json runs = nlohmann::json::array();
    for (int i = 0; i < 5; ++i) {
      runs.push_back({{"name", "b"},
                      {"run_name", "b"},
                      {"run_type", "iteration"},
                      {"repetition_index", i},
                      {"real_time", seconds * (1 + 1e-4 * ((i * 3) % 5))},
                      {"cpu_time", seconds},
                      {"time_unit", "s"}});
    }
    std::ofstream(file(name)) << nlohmann::json{
        {"context", {{"host_name", host}, {"num_cpus", 4}, {"date", "2026-01-01T00:00:00+00:00"}}},
        {"benchmarks", runs}};
  }
  GateRequest request(const std::string& current) const {
    GateRequest request;
    request.baseline = {file("old")};
    request.current = {file(current)};
    return request;
  }

  Scratch scratch_;
};

TEST_F(StoredGate, JudgesBothSides) {
  const GateRequest same = request("same"), slow = request("slow");
  const GateOutcome equal = run_gate(same);
  EXPECT_EQ(equal.stopped_by, 0);
  ASSERT_EQ(equal.judgement.checks.size(), 1U);
  EXPECT_NEAR(*equal.judgement.checks.front().change, 1e-4, 1e-6);
  EXPECT_NEAR(*run_gate(slow).judgement.checks.front().change, 0.5, 1e-6);
  EXPECT_EQ(make_sides(same).baseline, "baseline");
  EXPECT_EQ(make_sides(same).current_place, file("same"));
  EXPECT_EQ(make_document(same, equal.judgement).sections.size(),
            gate_document(equal.judgement, make_sides(same)).sections.size())
      << "thresholds are proposed by a build against itself only";
}

TEST_F(StoredGate, OtherMachinesAreRefusedOrNoted) {
  GateRequest other = request("elsewhere");
  expect_error(ErrorKind::input, {"different machines", "--force"}, [&] { run_gate(other); });
  other.force = true;
  const auto notes = run_gate(other).judgement.notes;
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes.front().find("UNLIKE MACHINES: "), 0U) << notes.front();
}

TEST_F(StoredGate, WithoutAnEngineOnlyOtherProgramsRun) {
  if (has_engine()) GTEST_SKIP() << "this build has an engine";
  GateRequest aa;
  aa.aa = "spec";
  expect_error(ErrorKind::usage, {"--aa", "no engine"}, [&] { run_gate(aa); });
  GateRequest commands;
  commands.ab = {"sleep 1", "sleep 2"};
  expect_error(ErrorKind::usage, {"--ab", "no engine"}, [&] { run_gate(commands); });
  GateRequest rerun = request("slow");
  rerun.rerun = file("program");
  expect_error(ErrorKind::usage, {"--rerun", "no engine"}, [&] { run_gate(rerun); });
}

TEST(GateRequestTest, SidesOfFreshRunsAreTheirPrograms) {
  GateRequest request;
  request.ab = {"/old", "/new", "spec"};
  EXPECT_EQ(make_sides(request).baseline, "old");
  EXPECT_EQ(make_sides(request).baseline_place, "/old");
  EXPECT_EQ(make_sides(request).current_place, "/new");
  request.ab.clear();
  request.aa = "quick";  // a shipped spec
  EXPECT_EQ(make_sides(request).current_place, this_program().string());
}

}  // namespace
}  // namespace paceline

#include "analysis/gate/render.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/support/expect_parts.h"

namespace paceline {
namespace {

Check slow() {
  Check check;
  check.subject = "mnist-cnn gpus=2,backend=<&\"|>";
  check.quantity = Quantity::time;
  check.verdict = Verdict::regression;
  check.evidence = Replication::paired;
  check.reason = "slower by 10.0 %, beyond the noise (p = 0.001)";
  check.baseline = 10.0;
  check.current = 11.0;
  check.change = 0.1;
  check.interval = Interval{0.09, 0.11};
  check.threshold = 0.025;
  check.p = 0.0005;
  check.adjusted_p = 0.001;
  check.baseline_runs = check.current_runs = 5;
  return check;
}

Judgement mixed() {
  Judgement judgement;
  judgement.checks.push_back(slow());
  Check unsure = slow();
  unsure.quantity = Quantity::accuracy;
  unsure.verdict = Verdict::undecided;
  unsure.reason = "2 and 2 runs\nof each";
  unsure.change = 0.02;
  judgement.checks.push_back(unsure);
  Check fine = slow();
  fine.quantity = Quantity::loss;
  fine.verdict = Verdict::pass;
  fine.reason = "";
  judgement.checks.push_back(fine);
  judgement.notes = {"a note"};
  return judgement;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GateRender, TextReportsTheVerdictWhyAndHow) {
  const std::string text =
      to_text(gate_document(mixed(), {"old", "new", "./a", "./b"}), {.details = true});
  EXPECT_TRUE(text.starts_with("gate: regression (3 checks: 1 passed, 1 undecided, 1 regression)"))
      << text;
  expect_parts(
      text, {"new ./b against old ./a", "10.00 s", "11.00 s", "+10.0 %", "[+9.0, +11.0]", "0.001",
             "-0.020", "time 2.5 %", "1 check of other quantities passed", "--rerun", "a note"});
  EXPECT_FALSE(has(text, "training loss  ")) << "what passed is not listed";
  expect_no_parts(text, {"\033"});
}

TEST(GateRender, AScreenHasWhatTheVerdictIsReadBy) {
  Judgement judgement = mixed();
  const auto screen = [&] {
    return to_text(gate_document(judgement, {}), {.width = 1000, .terminal_width = 100});
  };
  // One stage is red more often where rounds resemble their neighbours.
  expect_parts(screen(),
               {"over rounds that both sides have", "no fresh runs", "a note", "--verbose has"});
  expect_no_parts(screen(), {"time 2.5 %", "(Holm)"});
  judgement.is_sequential = true;
  expect_no_parts(screen(), {"interval: "});
}

TEST(GateRender, AScreenFoldsWhatMattersLeastOfManyRows) {
  Judgement judgement = mixed();
  const Check first = judgement.checks[0], second = judgement.checks[1];
  judgement.checks.clear();
  for (int i = 0; i < 30; ++i) {
    Check check = i == 29 ? first : second;
    check.subject = "mnist-cnn gpus=" + std::to_string(i + 1) + ",backend=mpi";
    if (i < 15) check.verdict = Verdict::pass, check.quantity = Quantity::time;
    judgement.checks.push_back(check);
  }
  const std::string text = to_text(gate_document(judgement, {}), {.width = 1000});
  expect_parts(text, {"20 of 30 rows: regressions, ", "\ngpus=30  time", "\ngpus=29 ",
                      "in all rows: mnist-cnn, backend=mpi", "undecided: all 14: "});
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = text.find("\ngpus=", at)) != text.npos; ++at) ++rows;
  EXPECT_EQ(rows, 20U) << text;
  expect_parts(to_text(gate_document(judgement, {}), {.details = true}), {"gpus=1,backend=mpi "});
}

TEST(GateRender, WarningsComeFirst) {
  Judgement judgement = mixed();
  judgement.warnings = {"the machine was busy in 3 of 3 runs"};
  const std::string text = to_text(gate_document(judgement, {"old", "new", "./a", "./b"}),
                                   {.width = 80, .terminal_width = 80});
  EXPECT_LT(text.find("Warning: the machine was busy in 3 of 3 runs\n"), text.find("quantity"));
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, 80U) << text.substr(begin, end - begin);
  }
  expect_parts(to_markdown(gate_document(judgement, {})), {"**Warning: the machine was busy"});
  EXPECT_EQ(Json::parse(to_json_text(gate_document(judgement, {})))["warnings"].size(), 1U);
  expect_parts(gate_junit(judgement, {}), {"<property name=\"warning\" value=\"the machine"});
  expect_parts(gate_annotations(judgement), {"::warning title=paceline gate::the machine"});
}

TEST(GateRender, IntervalsAreOfTheEvidenceThatThereIs) {
  Judgement judgement = mixed();
  expect_parts(to_text(gate_document(judgement, {}), {.details = true, .width = 1000}),
               {"of each check alone, over rounds that both sides have, taken as independent "
                "(use --until-decided where they resemble their neighbours: equal builds may be "
                "red more often than 5 %); p: two-sided"});
  judgement.red_if_resembling = 0.12;
  expect_parts(
      to_text(gate_document(judgement, {}), {.details = true, .width = 1000}),
      {"neighbours: with a correlation of 0.5, equal builds that vary as these are red in 12 % "
       "of such gates)"});
  for (std::size_t i : {1, 2}) judgement.checks[i].evidence = Replication::runs;
  judgement.checks[0].evidence = Replication::sessions;
  expect_parts(to_text(gate_document(judgement, {}), {.details = true, .width = 1000}),
               {"over means of sessions (time) and runs (test accuracy, training loss), taken as "
                "independent; p"});
  for (Check& check : judgement.checks) check.interval.reset();
  expect_no_parts(to_text(gate_document(judgement, {}), {.details = true, .width = 1000}),
                  {"interval: "});
  expect_parts(to_text(gate_document(judgement, {}), {.details = true, .width = 1000}),
               {"  - p: two-sided, Holm-adjusted over all checks\n"});
  judgement.is_confirmed = true;
  expect_parts(to_text(gate_document(judgement, {}), {.details = true, .width = 1000}),
               {"over all checks, of fresh runs over those\n"});
}

// Of stored runs they may be made; rounds until the gate was decided are fresh.
TEST(GateRender, FreshRunsAreMissedOnlyWhereThereAreNone) {
  Judgement judgement = mixed();
  expect_parts(to_text(gate_document(judgement, {}), {.width = 300}), {"no fresh runs confirm"});
  judgement.rounds = 6;
  expect_no_parts(to_text(gate_document(judgement, {}), {.width = 300}), {"no fresh runs confirm"});
  judgement.is_confirmed = true;
  expect_parts(to_text(gate_document(judgement, {}), {.width = 300}), {"no fresh runs confirm"});
}

TEST(GateRender, FreshRunsAreReported) {
  Judgement judgement = mixed();
  judgement.is_confirmed = true;
  judgement.checks.resize(1);
  judgement.checks[0].is_fresh = true;
  judgement.checks[0].first_change = 0.08;
  EXPECT_TRUE(
      has(to_text(gate_document(judgement, {})), "confirmed by fresh runs: slower by 10.0 %"));
  expect_parts(to_text(gate_document(judgement, {}), {.width = 300}), {"(first runs: +8.0 %)"});
  expect_parts(to_text(gate_document(judgement, {})), {"after fresh runs"});
  judgement.checks[0].verdict = Verdict::pass;
  judgement.checks[0].reason = "";
  expect_parts(to_text(gate_document(judgement, {})), {"not confirmed by fresh runs"});
  expect_parts(gate_annotations(judgement), {"::notice title=paceline gate pass::1 check: "});
}

TEST(GateRender, JsonHasAllChecks) {
  const Json json = Json::parse(to_json_text(gate_document(mixed(), {"old", "new", "./a", "./b"})));
  EXPECT_EQ(json["verdict"], "regression");
  EXPECT_EQ(json["baseline"], "./a");
  ASSERT_EQ(json["checks"].size(), 3U);
  EXPECT_EQ(json["checks"][0]["quantity"], "time");
  EXPECT_EQ(json["checks"][0]["change"], 0.1);
  EXPECT_EQ(json["checks"][0]["change_high"], 0.11);
  EXPECT_EQ(json["checks"][0]["p_adjusted"], 0.001);
  EXPECT_EQ(json["checks"][1]["verdict"], "undecided");
  EXPECT_TRUE(json["checks"][2]["first_change"].is_null());
}

TEST(GateRender, JunitCountsAndEscapes) {
  expect_parts(gate_junit(mixed(), {}),
               {"tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"",
                "name=\"mnist-cnn gpus=2,backend=&lt;&amp;&quot;|&gt;\"",
                "<failure message=\"slower by 10.0 %", "<skipped message=\"2 and 2 runs"});
}

// Surefire's and Jenkins' schema: seconds with 3 decimals at most.
TEST(GateRender, JunitHasTimes) {
  expect_parts(gate_junit(mixed(), {}),
               {"errors=\"0\" skipped=\"1\" time=\"11.000\">",
                "name=\"mnist-cnn gpus=2,backend=&lt;&amp;&quot;|&gt;\" time=\"11.000\">",
                "paceline.gate.loss\" name=\"mnist-cnn gpus=2,backend=&lt;&amp;&quot;|&gt;\" "
                "time=\"0.000\"/>"});
  Judgement rated = mixed();
  rated.checks[0].current = 5e-5;  // of a sample
  rated.checks[0].run_seconds = 8;
  expect_parts(gate_junit(rated, {}),
               {"skipped=\"1\" time=\"8.000\">", "backend=&lt;&amp;&quot;|&gt;\" time=\"8.000\">"});
}

TEST(GateRender, ACertainSlowdownThatPassesIsReportedEverywhere) {
  Judgement judgement = mixed();
  judgement.checks.resize(1);
  Check& check = judgement.checks[0];
  check.verdict = Verdict::pass;
  check.is_worse_below_threshold = true;
  check.reason = "slower by 2.2 %, beyond the noise (p < 0.0001), below the threshold of 2.5 %";
  judgement.sees = 0.038;
  expect_parts(to_text(gate_document(judgement, {}), {.width = 400}),
               {"1 passed (1 certainly worse, below the threshold), 0 undecided",
                "pass: time of mnist-cnn gpus=2,backend=<&\"|>: slower by 2.2 %",
                "95 % of such gates find a point that is slower by 3.8 %"});
  expect_parts(to_markdown(gate_document(judgement, {})), {"- pass: time of"});
  expect_parts(gate_junit(judgement, {}), {"<system-out>slower by 2.2 %, beyond the noise"});
  expect_parts(gate_annotations(judgement), {"::notice title=paceline gate pass::time of"});
  const Json json = Json::parse(to_json_text(gate_document(judgement, {})));
  EXPECT_EQ(json["checks"][0]["worse_below_threshold"], true);
  EXPECT_EQ(json["checks"][0]["reason"], check.reason);
  EXPECT_EQ(json["sees"], 0.038);
}

TEST(GateRender, MarkdownEscapesCells) {
  expect_parts(to_markdown(gate_document(mixed(), {})),
               {"backend=\\<&\"\\|\\>", "- undecided: test accuracy of", "2 and 2 runs of each"});
}

TEST(GateRender, AnnotationsAreOneLineEach) {
  const std::string text = gate_annotations(mixed());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_TRUE(text.starts_with("::error title=paceline gate regression::time of mnist-cnn"))
      << text;
  expect_parts(text, {"slower by 10.0 %25", "2 and 2 runs%0Aof each"});
}

TEST(GateRender, ABuildAgainstItselfReportsWhetherTheMachineIsSteady) {
  Judgement judgement;
  EXPECT_EQ(steadiness_text(judgement), "");
  Check check = slow();
  check.verdict = Verdict::pass;
  check.interval = Interval{-0.012, 0.009};
  judgement.checks = {check};
  EXPECT_EQ(steadiness_text(judgement),
            "steady enough for these thresholds: 95 % intervals of the time of equal runs reach "
            "1.2 %");
  Check other = check;
  other.quantity = Quantity::loss;
  other.verdict = Verdict::undecided;
  judgement.checks.push_back(other);
  EXPECT_TRUE(steadiness_text(judgement).starts_with("steady enough")) << "of time alone";
  check.verdict = Verdict::undecided;
  check.interval = Interval{-0.29, 0.2};
  judgement.checks = {check};
  expect_parts(steadiness_text(judgement), {"not steady enough", "reach 29.0 %"});
}

}  // namespace
}  // namespace paceline

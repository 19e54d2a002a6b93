// paceline gate and export as a user meets them. What stands in for a build is a script that leaves
// records of known times, so no engine is needed.
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/integration/cli/paceline.h"
#include "tests/support/has_engine.h"

namespace paceline {
namespace {

// The first argument of a run is "train"; times are 2 + 8 / gpus seconds, times what FILE.factor
// says, with a spread of less than 1 % that follows from side and repeat.
constexpr char kBuild[] = R"bash(#!/bin/bash
if [ "$1" = --version ]; then echo "paceline 0.1.0 stand-in (GNU, Release 12)"; exit 0; fi
for word in "$@"; do
  case $word in
    --store=*) store=${word#--store=};;
    --context=*) context=${word#--context=};;
    --gpus=*) gpus=${word#--gpus=};;
  esac
done
field() { grep -oP "\"$1\":\"?\K[^\",}]*" <<< "$context"; }
point=$(grep -oP '"point":"\K[^"]*' <<< "$context")
folder=$(grep -oP '"point_folder":"\K[^"]*' <<< "$context")
repeat=$(field repeat)
if [ -e "$0.fails" ]; then echo "paceline: rank 1 was killed" >&2; exit 71; fi
if [ -e "$0.sleeps" ]; then sleep 30; fi
seconds=$(awk -v g="$gpus" -v f="$(cat "$0.factor" 2> /dev/null || echo 1)" -v r="$repeat" \
  -v s="${#store}" 'BEGIN { print (2 + 8 / g) * f * (1 + 0.002 * sin(7 * r + s + g)) }')
mkdir -p "$store/$folder"
cat > "$store/$folder/$repeat.1.json" << RECORD
{"schema": 3, "kind": "measured", "study": "$(field study)", "point": "$point", "repeat": $repeat,
 "attempt": 1, "session": "$(field session)", "round": $(field round), "status": "completed",
 "reason": "", "identity": "x",
 "parameters": {"workload": "mnist-cnn", "gpus": $gpus, "cpus_per_task": 1, "backend": "mpi"},
 "layout": {"nodes": 1, "ntasks": $gpus, "cpus_per_task": 1, "gpus": $gpus, "cpus_per_replica": 1,
            "replicas_are": "cores"},
 "provenance": {"cpu_model": "$(cat "$0.cpu" 2> /dev/null || echo A CPU)"},
 "timing": {"fit_seconds": $seconds}, "throughput": {"samples": 1000},
 "quality": {"epochs": [{"train_loss": 0.5}, {"train_loss": 0.3}], "test_accuracy": 0.98}}
RECORD
)bash";

class CliGate : public Cli {
 protected:
  CliGate() {
    for (const char* name : {"old", "new"}) {
      std::ofstream(folder() / name) << kBuild;
      std::filesystem::permissions(folder() / name, std::filesystem::perms::owner_all);
    }
    std::ofstream(folder() / "spec.json")
        << R"({"name": "t", "workload": "mnist-cnn", "axes": {"gpus": [1, 2]},
              "fixed": {"backend": "mpi", "cpus_per_task": 1}})";
  }

  void make(const std::string& file, const std::string& content) const {
    std::ofstream(folder() / file) << content;
  }

  // The last line names them.
  static void expect_kept(const Ran& ran) {
    std::smatch kept;
    ASSERT_TRUE(std::regex_search(ran.err, kept, std::regex("kept in (/.*)\n$"))) << ran.err;
    EXPECT_TRUE(std::filesystem::exists(kept[1].str() + "/first/new/logs"));
    std::filesystem::remove_all(kept[1].str());
  }

  nlohmann::json json(const std::string& arguments, int code) const {
    const Ran ran = paceline(arguments + " --json");
    EXPECT_EQ(ran.code, code) << ran.err << ran.out;
    return nlohmann::json::parse(ran.out);
  }
};

TEST_F(CliGate, TwoLikeBuildsPass) {
  const Ran ran = succeed("gate --ab ./old ./new spec.json --control --rounds 3");
  expect_parts(ran.out, {"gate: pass", "\ngpus=1  time", "\ngpus=2  time", "in all rows: mnist-cnn",
                         "the control, old against old, shows no difference"});
  expect_parts(ran.err, {"old: paceline 0.1.0 stand-in", "[18/18]"});
  EXPECT_FALSE(contains(ran.err, "fresh rounds")) << "nothing was suspect";
}

TEST_F(CliGate, ASlowBuildIsConfirmedAndWrittenInEveryForm) {
  make("new.factor", "1.08");
  const Ran ran = paceline(
      "gate --ab ./old ./new spec.json --rounds 3 --out kept --junit j.xml --markdown m.md "
      "--github");
  EXPECT_EQ(ran.code, 1) << ran.err;
  expect_parts(ran.out, {"gate: regression", "confirmed by fresh runs: slower by", "+8.0 %",
                         "::error title=paceline gate regression::time of mnist-cnn gpus=2"});
  expect_parts(ran.err, {"3 fresh rounds of 2 points decide"});
  expect_parts(file_text(folder() / "j.xml"), {"<failure message=\"confirmed by fresh"});
  expect_parts(file_text(folder() / "m.md"), {"# gate: regression"});
  EXPECT_TRUE(std::filesystem::exists(folder() / "kept/fresh/new/gpus=2/3.1.json"));
  // The records kept are judged again, without running anything.
  const auto again = json("gate --baseline kept/fresh/old --current kept/fresh/new", 1);
  EXPECT_EQ(again["verdict"], "regression");
  EXPECT_EQ(again["checks"][0]["evidence"], "paired");
  expect_refused("gate --ab ./old ./new spec.json --out kept", 64, {"--out kept", "not an empty"});
}

TEST_F(CliGate, GoesOnWithWhatIsUndecided) {
  const Ran passed = succeed("gate --ab ./old ./new spec.json --only time --verbose");
  expect_parts(passed.err, {"after 4 rounds ", " rounds 2 of 2 checks are decided\n"});
  expect_parts(passed.out, {"95 % anytime-valid interval"});
  make("new.factor", "1.08");
  const auto slower = json("gate --ab ./old ./new spec.json --until-decided --out slower", 1);
  EXPECT_EQ(slower["sequential"], true);
  EXPECT_GE(slower["rounds"], 4);
  EXPECT_LT(slower.at("rounds"), 12);
  EXPECT_EQ(slower["confirmed"], false);
  EXPECT_TRUE(std::filesystem::exists(folder() / "slower/first/new/gpus=1/4.1.json"));
  const Ran ended = paceline("gate --ab ./old ./new spec.json --max-rounds 3");
  EXPECT_EQ(ended.code, 2) << ended.out;
  expect_parts(ended.out, {"regressions, after 3"});
  expect_refused("gate --ab ./old ./new spec.json --rounds 3 --max-rounds 4", 64, {"--rounds"});
  expect_refused("gate --aa spec.json --max-rounds 4", 64, {"--max-rounds", "--until-decided"});
  expect_refused("gate --ab ./old ./new spec.json --until-decided --rounds 4", 64, {"--rounds"});
}

TEST_F(CliGate, StoredSessionsAreUndecidedUntilRunsAreFresh) {
  succeed("gate --ab ./old ./old spec.json --rounds 3 --out monday");
  make("new.factor", "1.08");
  succeed("gate --ab ./new ./new spec.json --rounds 3 --out tuesday");
  const std::string stored = "gate --baseline monday/first/old --current tuesday/first/old";
  const Ran undecided = paceline(stored);
  EXPECT_EQ(undecided.code, 2);
  expect_parts(undecided.out, {"the sides share no session, and the baseline has 1"});
  const auto confirmed =
      json(stored + " --rerun ./old --current-binary ./new --rounds 3 --only time", 1);
  EXPECT_EQ(confirmed["confirmed"], true);
  EXPECT_EQ(confirmed["checks"][0]["fresh"], true);
  make("new.factor", "1");
  EXPECT_EQ(json(stored + " --rerun ./old --current-binary ./new --rounds 3", 0)["verdict"],
            "pass");
}

TEST_F(CliGate, ABuildThatFailsIsARegressionAndItsLogsAreKept) {
  make("new.fails", "");
  const Ran ran = paceline("gate --ab ./old ./new spec.json --rounds 3");
  EXPECT_EQ(ran.code, 1) << ran.out;
  expect_parts(ran.out, {"none of 3", "ended well: rank 1 was killed"});
  expect_kept(ran);
}

// Which a shell finds out only in the run.
TEST_F(CliGate, AProgramThatCannotBeStartedIsNoRegression) {
  if (!has_engine()) GTEST_SKIP();
  const Ran ran = paceline("gate --ab true 'nothere | cat; exit 127'");
  EXPECT_EQ(ran.code, 65) << ran.err;
  expect_parts(ran.err, {"new: no run started: ", "exit code 127"});
  expect_kept(ran);
  const Ran both = paceline("gate --ab 'false' 'sleep 0; false'");
  EXPECT_EQ(both.code, 65) << both.err;
  expect_kept(both);
}

TEST_F(CliGate, UnlikeMachinesOnlyByForce) {
  make("new.cpu", "Another CPU");
  succeed("gate --ab ./old ./new spec.json --rounds 3 --out kept");
  const std::string gate = "gate --baseline kept/first/old --current kept/first/new";
  expect_refused(gate, 65, {"different machines", "A CPU", "Another CPU", "--force"});
  expect_parts(succeed(gate + " --force").out, {"UNLIKE MACHINES: only the baseline ran on A CPU"});
}

TEST_F(CliGate, StoppedItIsMarkedAndKeepsWhatItHas) {
  make("new.sleeps", "");
  const Ran ran = shell(
      "(until ls kept/first/new/logs/*.log > /dev/null 2>&1; do sleep 0.1; done; kill -INT $$) & "
      "exec '" PACELINE_BINARY "' gate --ab ./old ./new spec.json --rounds 3 --out kept");
  EXPECT_EQ(ran.code, 130) << ran.err;
  expect_parts(ran.err, {"there is no verdict"});
  EXPECT_EQ(ran.out, "");
}

TEST_F(CliGate, GithubActionsIsNoticed) {
  make("new.factor", "1.0001");
  succeed("gate --ab ./old ./new spec.json --rounds 3 --out kept");
  const std::string gate = " paceline gate --baseline kept/first/old --current kept/first/new";
  expect_parts(shell("GITHUB_ACTIONS=true" + gate).out, {"::notice title=paceline gate pass"});
  expect_no_parts(shell(gate).out, {"::notice"});
  const Ran json = shell("GITHUB_ACTIONS=true" + gate + " --json");
  EXPECT_TRUE(nlohmann::json::accept(json.out)) << json.out;
  expect_parts(json.err, {"::notice"});
}

TEST_F(CliGate, GoogleBenchmarksFilesAreCompared) {
  const auto file = [](double time) {
    std::string rows;
    for (int i = 0; i < 3; ++i) {
      rows += std::string(i ? "," : "") + R"({"name": "BM_sum/8", "run_type": "iteration",
        "real_time": )" +
              std::to_string(time + i * 0.01) + "}";
    }
    return R"({"context": {"date": "today"}, "benchmarks": [)" + rows + "]}";
  };
  for (const char* name : {"a.json", "b.json", "c.json"}) make(name, file(10));
  make("slow.json", file(12));
  const std::string before = "gate --baseline a.json b.json --baseline c.json --current ";
  make("same.json", file(10));
  succeed(before + "same.json");
  const auto slow = json(before + "slow.json", 1);
  EXPECT_EQ(slow["checks"][0]["evidence"], "sessions");
  EXPECT_NEAR(slow["checks"][0]["change"].get<double>(), 0.2, 1e-3);
  expect_refused(before + "slow.json --rerun ./old --current-binary ./new", 64,
                 {"none of the checks that did not pass can be run again"});
}

TEST_F(CliGate, ExportsAreReadByTheToolsTheyAreFor) {
  succeed("gate --ab ./old ./old spec.json --rounds 3 --out kept");
  const Ran action = succeed("export kept/first/old --format github-action");
  EXPECT_EQ(nlohmann::json::parse(action.out).size(), 2U);
  succeed("export kept/first/old --format openmetrics --out metrics.txt");
  const std::string metrics = file_text(folder() / "metrics.txt");
  const std::regex line(
      R"j(# (TYPE|HELP) paceline_\w+ .+|paceline_\w+\{study="[^"]+",name="[^"]+"(,\w+="[^"]*")+\} [0-9.e+-]+|# EOF)j");
  std::istringstream lines(metrics);
  int samples = 0;
  for (std::string each; std::getline(lines, each);) {
    EXPECT_TRUE(std::regex_match(each, line)) << each;
    samples += each.starts_with("paceline_seconds{") ? 1 : 0;
  }
  EXPECT_EQ(samples, 2);
  EXPECT_TRUE(metrics.ends_with("\n# EOF\n"));
  expect_parts(metrics,
               {"\npaceline_speed_up{", "\npaceline_efficiency{", ",gpus=\"1\"", ",gpus=\"2\""});
  expect_refused("export kept/first/old --format openmetric", 64,
                 {"openmetric", "did you mean \"openmetrics\"?"});
  expect_refused("export missing --format openmetrics", 65, {"missing"});
}

TEST_F(CliGate, MetricsAreReadByPrometheus) {
  std::string python = "python3";
  if (shell(python + " -c 'import prometheus_client'").code != 0) python = "/usr/bin/python3";
  if (shell(python + " -c 'import prometheus_client'").code != 0) {
    GTEST_SKIP() << "python3 has no prometheus_client (python3-prometheus-client)";
  }
  succeed("gate --ab ./old ./old spec.json --rounds 3 --out kept");
  succeed("export kept/first/old --format openmetrics --out metrics.txt");
  make("read.py", R"(
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = {family.name: family for family in text_string_to_metric_families(open("metrics.txt").read())}
for name in ("paceline_seconds", "paceline_seconds_low", "paceline_speed_up", "paceline_speed_up_high", "paceline_efficiency"):
    by_size = {sample.labels["gpus"]: sample for sample in families[name].samples}
    assert set(by_size) == ({"2"} if name.endswith("high") else {"1", "2"}), (name, by_size)  # a base has no interval
    assert all(each.labels["backend"] == "mpi" and each.labels["workload"] == "mnist-cnn" for each in by_size.values())
    print(name, round(by_size["2"].value, 1))
)");
  const Ran ran = expect_success(shell(python + " read.py"));
  expect_parts(ran.out,
               {"paceline_seconds 6.0", "paceline_speed_up 1.7", "paceline_efficiency 0.8"});
}

TEST_F(CliGate, AbsentProgramsAreNamed) {
  PACELINE_NEEDS_ENGINE();
  expect_refused("gate --ab 'true' 'no-such-program 1'", 65,
                 {"--ab: there is no program no-such-program to run", "check its name"});
  expect_refused("gate --ab ./missing true", 65,
                 {"--ab: there is no program ./missing to run", "check its path"});
  expect_refused("gate --ab true 'sh nothere.sh'", 65, {"--ab: there is no script nothere.sh"});
}

TEST_F(CliGate, BadRequestsAreOneLine) {
  const std::string ab = "gate --ab ./old ./new spec.json ";
  expect_refused("gate", 64, {"nothing to compare is given", "--ab OLD NEW SPEC"});
  expect_refused("gate --baseline a", 64, {"there is no --current"});
  expect_refused("gate --current a", 64, {"there is no --baseline"});
  expect_refused(ab + "--baseline a --current b", 64, {"several kinds of gate are given at once"});
  expect_refused("gate --baseline no --current spec.json", 65, {"no"});
  expect_refused("gate --ab ./old ./new", 64,
                 {"--ab: ./old is a build of Paceline, and builds need a spec", "quick.json"});
  expect_refused(ab + "--timeout -3", 64, {"--timeout: is -3, must be above 0"});
  expect_refused("gate --ab ./missing ./new spec.json", 64, {"./missing", "paceline binary"});
  expect_refused("gate --ab /bin/true ./new spec.json", 64, {"not a paceline program"});
  expect_refused("gate --ab spec.json ./new spec.json", 64, {"not an executable"});
  expect_refused(ab + "--threshold fast", 64, {"\"fast\" is not a threshold", "--threshold"});
  expect_refused(ab + "--accuracy-threshold -1", 64, {"--accuracy-threshold"});
  expect_refused(ab + "--only tme", 64, {"unknown quantity \"tme\"", "did you mean \"time\"?"});
  expect_refused(ab + "--rounds 0", 64, {"--rounds"});
  expect_refused("gate --baseline a --current b --control", 64, {"--control", "for --ab"});
  expect_refused("gate --baseline a --current b --out c", 64,
                 {"--out", "no effect without fresh runs"});
  expect_refused("gate --baseline a --current b --rounds 3", 64,
                 {"--rounds", "no effect without fresh runs"});
  expect_refused("gate --baseline a --current b --data .", 64,
                 {"--data", "no effect without fresh runs"});
  expect_refused(ab + "--force", 64, {"--force", "for stored studies"});
  expect_refused(ab + "--junit no/j.xml", 65, {"no/j.xml", "cannot be written"});
  expect_refused(ab + "--markdown .", 65, {"--markdown ."});
  expect_refused("gate --baseline a --current b --current-binary c", 64, {"--current-binary"});
  expect_refused("gate --baselin a", 64, {"did you mean --baseline?"});
}

// A slip in a command line costs no record.
TEST_F(CliGate, OnlyItsOwnFilesAreReplaced) {
  succeed("gate --ab ./old ./old spec.json --rounds 3 --out a");
  succeed("gate --ab ./new ./new spec.json --rounds 3 --out b");
  const std::string record = file_text(folder() / "a/first/old/gpus=1/1.1.json");
  const std::string gate = "gate --baseline a/first/old --current b/first/old ";
  for (const std::string& command : {std::string("export a/first/old --format openmetrics --out "),
                                     gate + "--junit ", gate + "--markdown "}) {
    expect_refused(command + "a/first/old/gpus=1/1.1.json", 65,
                   {"1.1.json", "the file exists already and is no", "give another name"});
    const Ran once = paceline(command + "mine"), again = paceline(command + "mine");
    EXPECT_EQ(again.code, once.code) << again.err;
    std::filesystem::remove(folder() / "mine");
  }
  const std::string exported = "export a/first/old --out mine --format ";
  succeed(exported + "github-action");
  succeed(exported + "openmetrics");
  succeed(exported + "github-action");
  EXPECT_EQ(file_text(folder() / "a/first/old/gpus=1/1.1.json"), record);
}

TEST_F(CliGate, AVerdictCountsMoreThanItsFile) {
  std::ofstream(folder() / "new", std::ios::app) << "rm -rf '" << folder().string() << "/sub'\n";
  make("new.factor", "1.08");
  std::filesystem::create_directory(folder() / "sub");
  const Ran ran = paceline("gate --ab ./old ./new spec.json --rounds 3 --junit sub/j.xml");
  EXPECT_EQ(ran.code, 1) << ran.err;
  expect_parts(ran.err, {"cannot be written"});
}

TEST_F(CliGate, RecordsCannotSteerATerminal) {
  succeed("gate --ab ./old ./old spec.json --rounds 3 --out a");
  succeed("gate --ab ./new ./new spec.json --rounds 3 --out b");
  const std::string name = R"(=\\u001b[31m\\u009b2J\\u202e<b>\\n\\u0007|)";
  ASSERT_EQ(shell("sed -i 's/mnist-cnn/" + name + "/' */first/old/*/*.json").code, 0);
  const std::string gate = "gate --baseline a/first/old --current b/first/old ";
  for (const std::string& command :
       {gate, gate + "--github", gate + "--json", std::string("explain a/first/old"),
        std::string("explain --json a/first/old"), std::string("best a/first/old"),
        std::string("report a/first/old"), std::string("report a/first/old --format csv"),
        std::string("report a/first/old --format md"),
        std::string("report a/first/old --format json"),
        std::string("report a/first/old --format html --no-plots"),
        std::string("export a/first/old --format openmetrics")}) {
    const Ran ran = paceline(command);
    const std::string all = ran.out + ran.err;
    EXPECT_FALSE(all.empty());
    for (const char* bad : {"\x1b", "\a", "\u009b", "\u202e"}) {
      EXPECT_FALSE(contains(all, bad)) << command << "\n" << all;
    }
  }
  EXPECT_FALSE(paceline(gate + "--junit j.xml --markdown m.md").out.empty());
  for (const char* file : {"j.xml", "m.md"}) {
    expect_no_parts(file_text(folder() / file), {"\x1b", "\u009b", "\u202e", "<b>"});
  }
}

TEST_F(CliGate, TheSameRunsOnBothSidesAreRefused) {
  make("b.json", R"({"benchmarks": [{"name": "a", "real_time": 25}]})");
  expect_refused("gate --baseline b.json --current b.json", 64,
                 {"baseline and current are the same runs", "b.json"});
}

TEST_F(CliGate, BadFilesAreNamed) {
  make("cut.json", R"({"benchmarks": [)");
  expect_refused("gate --baseline cut.json --current cut.json", 65, {"cut.json"});
  make("b.json", R"({"benchmarks": [{"name": "a", "real_time": 0}]})");
  expect_refused("gate --baseline b.json --current b.json", 65, {"b.json:1", "took no time"});
  make("spec.json", R"({"name": "t", "workload": "mnist-cnn", "axes": {"gpu": [1]}})");
  expect_refused("gate --ab ./old ./new spec.json", 64, {"spec.json:1", "did you mean \"gpus\"?"});
}

TEST_F(CliGate, SessionsAreNotPooledUnasked) {
  make("new.factor", "1.1");
  ASSERT_EQ(paceline("gate --ab ./old ./new spec.json --rounds 3 --out a").code, 1);
  const std::string both = " a/first/old a/first/new";
  const Ran each = succeed("explain --json" + both);
  const auto explanations = nlohmann::json::parse(each.out)["explanations"];
  ASSERT_EQ(explanations.size(), 2U);
  expect_parts(explanations[1]["title"], {"a/first/new: "});
  EXPECT_EQ(
      nlohmann::json::parse(paceline("explain --json --pool" + both).out)["explanations"].size(),
      1U);
  expect_refused("best" + both, 64,
                 {"a/first/old and a/first/new", "runs of the same points", "--pool"});
  succeed("best --pool" + both);
}

TEST_F(CliGate, ExplainRefusesWhatItCannotRead) {
  const std::string cassava = PACELINE_SOURCE_DIR "/results/reference/cassava-resnet50";
  expect_refused("explain", 64, {"STUDY"});
  expect_refused("explain missing", 65, {"missing"});
  expect_refused("explain " + cassava + " --base bset", 64, {"did you mean \"best\"?"});
  expect_refused("explain " + cassava + " --only backend", 64, {"not KEY=VALUE"});
  expect_parts(succeed("explain " + cassava + " --base best").out, {"the cause may be "});
  EXPECT_TRUE(nlohmann::json::accept(paceline("explain --json " + cassava).out));
}

}  // namespace
}  // namespace paceline

// What every verb owes its user: help with examples, the nearest name, completion, plain pipes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "engine/core/text.h"
#include "results/store.h"
#include "tests/integration/cli/paceline.h"
#include "tests/support/has_engine.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

const std::string kStudy = PACELINE_SOURCE_DIR "/results/reference/cassava-resnet50";

class CliVerbs : public Cli {
 protected:
  // The names in the help of the program itself, so that a new verb is tested too.
  std::vector<std::string> verbs() const {
    const std::string help = paceline("--help").out;
    std::vector<std::string> names;
    for (const std::string& line : split(help.substr(0, help.find("\nOptions:")), '\n')) {
      if (line.starts_with("  ") && line[2] != ' ') {
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
      }
    }
    return names;
  }

  bool is_absent(const std::string& verb) const {
    return contains(paceline(verb + " x").err, "this build has no engine");
  }

  // What the completion script offers after these words.
  std::string completed(const std::string& words, int position) const {
    return shell("source <(paceline completion bash); COMP_WORDS=(paceline " + words +
                 "); COMP_CWORD=" + std::to_string(position) +
                 "; _paceline; echo \"${COMPREPLY[*]}\"")
        .out;
  }

  std::string on_terminal(const std::string& assignment, const std::string& arguments) const {
    return shell(assignment + " script -qec \"'" PACELINE_BINARY "' " + arguments + "\" /dev/null")
        .out;
  }
};

// --record "$FILE" of a variable that is not set.
TEST_F(CliVerbs, AnEmptyValueIsRefused) {
  for (const auto& [command, name] : std::vector<std::pair<std::string, std::string>>{
           {"train mnist-mlp --record ''", "--record"},
           {"train mnist-mlp --resume=", "--resume"},
           {"train mnist-mlp --weights ''", "--weights"},
           {"train mnist-mlp --backend ''", "--backend"},
           {"train mnist-mlp --gpus ''", "--gpus"},
           {"train mnist-mlp --data ''", "--data"},
           {"train mnist-mlp --run-dir ''", "--run-dir"},
           {"train mnist-mlp --trace ''", "--trace"},
           {"train mnist-mlp --tensorboard ''", "--tensorboard"},
           {"sweep ''", ""},
           {"sweep s.json --results '' --dry-run", "--results"},
           {"submit s.json --site ''", "--site"},
           {"submit s.json --site x.json --fallback ''", "--fallback"},
           {"status ''", ""},
           {"data verify ''", ""},
           {"report ''", ""},
           {"gate --baseline '' --current ''", "--baseline"}}) {
    if (is_absent(command.substr(0, command.find(' ')))) continue;
    expect_refused(command, 64, {name + " is empty", "give a value, or leave it out"});
  }
}

TEST_F(CliVerbs, HelpHasExamplesThatNameTheVerb) {
  const std::vector<std::string> names = verbs();
  for (const char* verb : {"list", "describe", "train", "sweep", "report", "doctor"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), verb), 1) << verb;
  }
  for (const std::string& verb : names) {
    if (is_absent(verb)) continue;
    const Ran ran = paceline(verb + " --help");
    EXPECT_EQ(ran.code, 0) << verb;
    EXPECT_EQ(ran.err, "");
    const auto examples = ran.out.find("Example");
    ASSERT_NE(examples, std::string::npos) << ran.out;
    EXPECT_TRUE(contains(ran.out.substr(examples), "paceline " + verb)) << ran.out;
  }
}

TEST_F(CliVerbs, HelpNamesTheExitCodes) {
  const std::string help = paceline("--help").out;
  expect_parts(help, {"64 wrong usage", "65 bad input", "71 peer", "72 stall", "Examples:"});
}

TEST_F(CliVerbs, VersionIsOneLine) {
  const Ran ran = succeed("--version");
  const std::regex line(R"(paceline \d+\.\d+\.\d+ [0-9a-z]+( \(dirty\))? \(\w+, \w+ [0-9.]+\)\n)");
  EXPECT_TRUE(std::regex_match(ran.out, line)) << ran.out;
}

TEST_F(CliVerbs, PagesOfTheDocsAreMadeOfTheTables) {
  for (const std::string what : {"record", "findings"}) {
    EXPECT_EQ(succeed("list " + what + " --markdown").out,
              file_text(PACELINE_SOURCE_DIR "/docs/" + what + ".md"))
        << "if this is as it should be: tests/regenerate";
    expect_refused("list " + what + " --json", 64, {"--json", "list " + what + " --markdown"});
  }
}

TEST_F(CliVerbs, OptionsOfTheDocsAreThoseOfTheTable) {
  EXPECT_EQ(succeed("list parameters --markdown").out,
            file_text(PACELINE_SOURCE_DIR "/docs/options.md"))
      << "if this is as it should be: tests/regenerate";
  const auto rows = nlohmann::json::parse(paceline("list parameters --json").out);
  EXPECT_GT(rows.size(), 60U);
  EXPECT_EQ(rows[0]["name"], "gpus");
  expect_refused("list backends --markdown", 64, {"--markdown", "list parameters --markdown"});
}

TEST_F(CliVerbs, ImportersAreListed) {
  const auto rows = nlohmann::json::parse(paceline("list importers --json").out);
  const std::string help = paceline("import --help").out;
  EXPECT_GE(rows.size(), 7U);
  for (const auto& row : rows) {
    expect_parts(paceline("list importers").out, {row.at("about").get<std::string>()});
    expect_parts(help, {"  paceline import " + row.at("name").get<std::string>() + " "});
  }
}

TEST_F(CliVerbs, NearestNamesAreSuggested) {
  expect_refused("swep", 64, {"unknown command swep", "did you mean sweep?"});
  expect_refused("zzzzzz", 64, {"unknown command zzzzzz", "see paceline --help"});
  expect_refused("report --formt md x", 64, {"unknown option --formt", "did you mean --format?"});
  expect_refused("sweep x.json --dryrun", 64, {"--dryrun", "did you mean --dry-run?"});
  expect_refused("list workload", 64, {"workload", "workloads, backends, wrappers, devices"});
  expect_refused("sweep", 64, {"spec", "see paceline sweep --help"});
}

TEST_F(CliVerbs, WordsOfTheParserAreOurs) {
  expect_refused("submit s --site x --max-gpu-hours -1", 64,
                 {"--max-gpu-hours: is -1, must be 0 or more; see paceline submit --help"});
  expect_refused("data make cassava --images 1 --out x --shards 0", 64,
                 {"--shards: is 0, must be above 0"});
  expect_refused("data fetch mnist --out x --retries 101", 64,
                 {"--retries: is 101, must be from 0 to 100"});
  expect_refused("data make cassava --out x --images few", 64,
                 {"--images: is few, must be a whole number"});
  expect_refused("report s --out", 64, {"--out: needs a value"});
  expect_refused("report s --out a --out b", 64, {"--out: is given 2 times; give it once"});
  expect_refused("report '" + kStudy + "' --out x --plots gif", 64,
                 {"unknown plot format \"gif\"", "known: svg, png, pdf"});
  expect_refused("report '" + kStudy + "' --plots svg", 64, {"--plots", "add --out DIR"});
}

TEST_F(CliVerbs, NamesAreTextAndNotEmpty) {
  expect_refused("report ''", 64, {"STUDY", "is empty"});
  expect_refused("list sites", 64, {"what: \"sites\" is not one of workloads, backends,"});
  expect_refused("list workload", 64, {"did you mean workloads?"});
  expect_refused("report cassava-resnet50", 65,
                 {"no such study", "did you mean results/reference/cassava-resnet50?"});
  expect_refused("", 64, {"name a command: new, sweep, report, gate,", "paceline --help"});
  expect_refused("sweep quick --timeout 5m", 64,
                 {"--timeout: \"5m\" is not a number; give one above 0"});
  expect_refused("gate --aa quick --rounds 2", 64, {"--rounds: is 2, must be from 3 to 1000"});
  expect_refused("sweep '' --dry-run", 64, {"spec", "is empty"});
  expect_refused("data verify ''", 64, {"DIR", "is empty"});
  expect_refused("report a $'b\\xff'", 64, {"argument 3", "b\ufffd", "is not UTF-8 text"});
  expect_refused("sweep s.json --set $'weights=\\xff'", 64, {"argument 4", "is not UTF-8 text"});
}

TEST_F(CliVerbs, BestAnswersOrRefusesInOneLine) {
  expect_parts(succeed("best '" + kStudy + "' --within 5%").out,
               {"fastest by its mean: 4 GPUs, cpus-per-task 16: 214 s", "undecided"});
  for (const char* within : {"0.05", "5%"}) {
    const Ran same = paceline("best '" + kStudy + "' --json --within " + std::string(within));
    EXPECT_TRUE(contains(same.out, "\"within\": 0.05")) << within;
  }
  expect_refused("best '" + kStudy + "' --within 5", 64, {"--within: \"5\" is 500 %", "write 5%"});
  for (const char* within : {"x", "-1", "nan", "5%%"}) {
    expect_refused("best '" + kStudy + "' --within " + std::string(within), 64, {"--within", "5%"});
  }
  expect_refused("best '" + kStudy + "' --within 1e9", 64, {"--within", "a share below 1"});
  expect_refused("best /nonexistent/study", 65, {"no such study"});
  expect_refused("best '" + kStudy + "' --only backend=no", 64, {"backend", "mirrored"});
  const std::string some = "report '" + kStudy + "' --format csv --only gpus=1";
  EXPECT_EQ(succeed(some + ",2").out, succeed(some + " --only gpus=2").out) << "either";
  EXPECT_NE(succeed(some + ",2").out, succeed(some).out);
  expect_refused(some + ",7", 64, {"no record has gpus \"7\""});
  expect_refused("best", 64, {"STUDY", "see paceline best --help"});
}

TEST_F(CliVerbs, ReportMakesASheetForAProposal) {
  const std::string reference = PACELINE_SOURCE_DIR "/results/reference/";
  const std::string sheet = "report --sheet '" + reference + "jsc-clip-vit-l14'";
  expect_parts(succeed(sheet + " --out out --plots svg").out,
               {"The size to apply for\n16 GPUs, the base: no larger size has", "node-hours"});
  const std::string html = file_text(folder() / "out/sheet.html");
  expect_parts(html, {"<main class=\"sheet\">", "<figure id=\"plot-speedup\">"});
  expect_parts(file_text(folder() / "out/sheet.md"), {"](speedup.svg)"});
  EXPECT_EQ(paceline(sheet + " --out out --plots svg").code, 0) << "replaces its own files";
  const auto json = nlohmann::json::parse(paceline(sheet + " --json").out);
  EXPECT_EQ(json["chosen"]["gpus"], 16);
  EXPECT_NEAR(json["chosen"]["node_hours"].get<double>(), 4 * 1744.86 / 3600, 1e-3);
  EXPECT_EQ(json["sizes"].size(), 5U);
  for (const auto& [format, part] : std::vector<std::pair<const char*, const char*>>{
           {"md", "## The size to apply for"},
           {"latex", "\\subsection*{The size to apply for}"},
           {"html", "<h2>The size to apply for</h2>"},
           {"csv", "size,nodes,gpus,"}}) {
    expect_parts(succeed(sheet + " --format " + format).out, {part});
  }
  expect_refused("report --sheet '" + reference + "jsc-clip-vit-l14' '" + kStudy + "'", 64,
                 {"these records make 2 tables", "choose one, e.g. with --only workload="});
  expect_refused("report --sheet no/such/study", 65, {"no/such/study"});
  shell("mkdir empty");
  EXPECT_NE(paceline("report --sheet empty").code, 0);
  expect_refused(sheet + " --efficiency 70", 64, {"--efficiency", "write 70%"});
  expect_refused(sheet + " --efficiency 101%", 64, {"--efficiency", "at most 100 %"});
  expect_refused(sheet + " --base batch_per_replica=512", 64, {"--base", "is not another size"});
  expect_refused(sheet + " --columns +cost", 64, {"--columns", "--sheet"});
  expect_refused("report --efficiency 80% '" + kStudy + "'", 64, {"--efficiency", "--sheet"});
}

TEST_F(CliVerbs, PredictMarksWhatItPredictsAndRefusesTheRest) {
  const std::string study = "predict '" + kStudy + "' --only cpus_per_task=8";
  expect_parts(succeed(study + " --gpus 8 --up-to 3 --out out --no-plots").out,
               {"  predicted  ", "laws: fitted to 1 and 2 GPUs, off by "});
  EXPECT_TRUE(std::filesystem::exists(folder() / "out/prediction.html"));
  const auto json = nlohmann::json::parse(paceline(study + " --gpus 8 --json").out);
  EXPECT_EQ(json["tables"][0]["rows"].back()["kind"], "predicted");
  for (const char* gpus : {"0", "-4", "x", "2000000", "nan", "\"\""}) {
    expect_refused(study + " --gpus " + gpus, 64, {"--gpus"});
  }
  expect_refused(study, 64, {"--gpus is required"});
  expect_refused(study + " --gpus 8 --up-to 1", 65, {"one size was measured", "no phases"});
  expect_refused(study + " --gpus 8 --by magic", 64, {"laws, replay"});
  expect_refused(study + " --gpus 8 --what-if links=2x", 65, {"a what-if needs the replay"});
  expect_refused(study + " --gpus 8 --what-if links=2x --by laws", 64, {"--by replay"});
  expect_refused(study + " --gpus 8 --network none.json", 65, {"none.json"});
  expect_refused(study + " --gpus 8 --plots svg", 64, {"--out"});
  expect_refused("predict /nonexistent/study --gpus 8", 65, {"no such study"});
}

TEST_F(CliVerbs, WhatCannotBeReadOfAStudyIsReported) {
  const Store store(folder() / "s");
  for (const int gpus : {1, 2, 4}) {
    store.write("gpus=" + std::to_string(gpus), 1,
                sample_record({.gpus = gpus, .fit_seconds = 10.0 / gpus}), "");
  }
  std::ofstream(folder() / "s/gpus=4/9.1.json") << "{\"schema\": 99}";
  for (const char* command :
       {"report s", "best s", "explain s", "explain s --verbose --format md", "explain s --json",
        "predict s --gpus 8", "predict s --gpus 8 --json", "explain s s/gpus=1/1.1.json --pool"}) {
    const Ran ran = succeed(command);
    const auto first = ran.out.find("ignored record: s/gpus=4/9.1.json");
    EXPECT_NE(first, std::string::npos) << command << ": " << ran.out;
    EXPECT_EQ(ran.out.find("ignored record", first + 1), std::string::npos) << ran.out;
  }
  std::ofstream(folder() / "s/plan.json") << R"({"schema": 1, "study": "quick",
      "workload": "mnist-cnn", "points": [
      {"gpus": 999999, "cpus_per_task": 2, "backend": "mirrored"}]})";
  for (const char* command : {"report s", "best s", "explain s"}) {
    expect_parts(succeed(command).out,
                 {"ignored record: s/plan.json:3: 999999 replicas", "4 replicas"});
  }
}

// A study of an earlier version: its plan and its records name a parameter, a choice and backends
// that are gone. Points that differ in these stay apart.
TEST_F(CliVerbs, AStudyThatNamesWhatIsGoneIsStillRead) {
  std::string points;
  for (const double clip : {0.5, 2.0}) {
    for (const auto& [gpus, backend] :
         {std::pair{1, "self"}, {2, "mpi+fp16"}, {4, "mirrored/gloo"}}) {
      const std::string values = fmt::format(
          R"("gpus": {}, "cpus_per_replica": 1, "backend": "{}", "schedule": "polynomial", )"
          R"("power": 2.0, "clip_value": {}, "augment": "transpose", "until": "test_top5=0.9")",
          gpus, backend, clip);
      points += (points.empty() ? "{" : ",\n{") + values + "}";
      if (gpus == 4) continue;  // planned only
      for (int repeat = 1; repeat <= 3; ++repeat) {
        for (const char* study : {"s", "later"}) {
          Json json = sample_record({.gpus = gpus,
                                     .repeat = repeat,
                                     .fit_seconds = 10 * clip / gpus + 0.01 * repeat,
                                     .backend = backend,
                                     .session = study});
          json["parameters"].update(Json::parse("{" + values + "}"));
          Store(folder() / study)
              .write(fmt::format("gpus={},clip_value={}", gpus, clip), repeat, json, "");
        }
      }
    }
  }
  std::ofstream(folder() / "s/plan.json")
      << R"({"schema": 1, "study": "quick", "workload": "mnist-cnn", "points": [)" << points
      << "]}";
  const Ran report = succeed("report s");
  expect_no_parts(report.out, {"ignored record"});
  expect_parts(report.out, {"clip_value", "mpi+fp16", "mirrored/gloo", "4 replicas"});
  const auto rows = nlohmann::json::parse(paceline("report s --json").out)["tables"][0]["rows"];
  EXPECT_EQ(rows.size(), 6U) << rows;
  std::ofstream(folder() / "t.json") << R"({"name": "t", "workload": "mnist-cnn", "repeats": 3,
      "fixed": {"backend": "mpi", "cpus_per_task": 1}, "axes": {"gpus": [1, 2]}})";
  for (const char* command : {"best s", "explain s", "plan t.json --pilot s --detect 5%",
                              "predict s --only clip_value=2 --gpus 8"}) {
    const Ran ran = paceline(command);
    EXPECT_EQ(ran.code, 0) << command << ran.err << ran.out;
    EXPECT_FALSE(contains(ran.out, "ignored record")) << command << ran.out;
  }
  const Ran gate = paceline("gate --baseline s --current later");
  EXPECT_TRUE(contains(gate.out, "(12 checks: ")) << gate.err << gate.out;  // of four points
  if (has_engine()) expect_refused("train mnist-mlp --clip-value 1", 64, {"--clip-value"});
  std::ofstream(folder() / "t.json")
      << R"({"name": "t", "workload": "mnist-mlp", "fixed": {"clip_value": 1}})";
  expect_refused("sweep t.json", 64, {"unknown axis \"clip_value\"", "t.json"});
}

TEST_F(CliVerbs, RecordsOfCollectivesOnlyAreNamedAsSuch) {
  succeed("import nccl-tests '" PACELINE_SOURCE_DIR
          "/tests/data/import/nccl-tests-all_reduce_perf.txt' --study links");
  const std::string study = "results/local/links";
  for (const std::string& command : {"best " + study, "explain " + study, "explain --pool " + study,
                                     "report --sheet " + study, "predict --gpus 4 " + study}) {
    expect_refused(
        command, 65,
        {study + ": these records are of collectives only", "see paceline report " + study});
  }
  succeed("report " + study);
}

TEST_F(CliVerbs, CompletionOffersVerbsOptionsAndChoices) {
  EXPECT_EQ(completed("swe", 1), "sweep\n");
  EXPECT_EQ(completed("report --form", 2), "--format\n");
  EXPECT_EQ(completed("list b", 2), "backends\n");
  EXPECT_EQ(completed("report --format ht", 3), "html\n");
  EXPECT_EQ(completed("report --format = ht", 4), "html\n");  // as bash splits --format=ht
  EXPECT_EQ(completed("report --only back", 3), "backend=\n");
  EXPECT_EQ(completed("sweep x --set precis", 4), "precision=\n");
  EXPECT_EQ(completed("sweep qui", 2), "quick\n");
  EXPECT_EQ(completed("submit x --site jea", 4), "jean-zay\n");
  EXPECT_EQ(completed("gate --aa qui", 3), "quick\n");
  EXPECT_EQ(completed("gate --only accu", 3), "accuracy\n");
  EXPECT_EQ(completed("history --metric ser", 3), "serial-fraction\n");
  EXPECT_EQ(completed("best --least gpu", 3), "gpu-hours\n");
  const std::string groups = completed("report --columns ''", 3);
  expect_parts(groups, {"scaling"});
  for (const std::string& group : split(trim(groups), ' ')) {
    EXPECT_EQ(paceline("report '" + kStudy + "' --columns " + group).code, 0) << group;
  }
  EXPECT_EQ(completed("report --out ''", 3), "\n");  // files, of which bash knows
  EXPECT_EQ(completed("report ''", 2), "\n");
  if (!is_absent("train")) {
    EXPECT_EQ(completed("train mnist-m", 2), "mnist-mlp\n");
    EXPECT_EQ(completed("train x --backend sel", 4), "self\n");
    EXPECT_EQ(completed("train x --precision b", 4), "bf16\n");
    EXPECT_EQ(completed("train x --learning-rate ''", 4), "\n");
  }
  for (const char* name : {"zsh", "fish"}) {
    expect_parts(succeed(std::string("completion ") + name).out, {"report", "backends"});
  }
  expect_refused("completion tcsh", 64, {"tcsh", "bash, zsh, fish"});
}

TEST_F(CliVerbs, ColoursOnlyOnATerminalThatWantsThem) {
  const std::string report = "report '" + kStudy + "' --no-plots";
  EXPECT_EQ(paceline(report).out.find('\033'), std::string::npos);
  if (shell("command -v script").code != 0) GTEST_SKIP() << "no script(1): no terminal to test on";
  expect_parts(on_terminal("env -u NO_COLOR TERM=xterm", report), {"\033["});
  expect_no_parts(on_terminal("NO_COLOR=1 TERM=xterm", report), {"\033["});
  expect_no_parts(on_terminal("env -u NO_COLOR TERM=dumb", report), {"\033["});
}

TEST_F(CliVerbs, AStudyThatIsNotThereIsOneLine) {
  expect_refused("report no/such/study", 65, {"no/such/study"});
}

TEST_F(CliVerbs, AFullOutputIsAnErrorNotASilence) {
  const std::string spec = "'" PACELINE_SOURCE_DIR "/sweeps/quick.json' --repeats 50";
  for (const std::string& line :
       {std::string("--help"), std::string("list backends"), "sweep " + spec + " --dry-run --json",
        "report '" + kStudy + "' --no-plots"}) {
    const Ran ran = shell("paceline " + line + " > /dev/full");
    EXPECT_EQ(ran.code, 65) << line;
    EXPECT_EQ(ran.err,
              "paceline: standard output could not be written; free disk space, or redirect the "
              "output\n");
  }
}

TEST_F(CliVerbs, WordsThatPeopleTryLeadSomewhere) {
  EXPECT_EQ(paceline("help").out, paceline("--help").out);
  EXPECT_EQ(paceline("help report").out, paceline("report --help").out);
  EXPECT_EQ(paceline("version").out, paceline("--version").out);
  expect_refused("compare a b", 64, {"unknown command compare", "use report A B"});
  expect_refused("plot a", 64, {"unknown command plot", "use report STUDY"});
  expect_refused("best --lr 1", 64, {"unknown option --lr", "use --learning-rate"});
  PACELINE_NEEDS_ENGINE();
  expect_parts(paceline("list workloads").out, {"ResNet-50 on 5 classes of cassava leaves"});
}

TEST_F(CliVerbs, ShippedSpecsAndSitesAreFoundByName) {
  const Ran plan = succeed("sweep amdahl --dry-run");
  EXPECT_EQ(paceline("sweep sweeps/amdahl.json --dry-run").out, plan.out);  // as examples have it
  succeed("explain results/reference/cassava-resnet50");
  expect_refused("sweep amdal --dry-run", 65, {"amdal: no such file", "sweeps/amdahl.json?"});
  expect_refused("sweep sweeps/amdal.json --dry-run", 65, {"did you mean sweeps/amdahl.json?"});
  expect_refused("submit quick --site nuy --dry-run", 65, {"did you mean slurm/sites/nyu.json?"});
  if (!is_absent("train")) {
    expect_refused("sweep quick --dry-run --data /nowhere", 65,
                   {"--data /nowhere: it is no data set, and holds no folder mnist; name the"});
    const std::vector<std::string> unread = {"the input is synthetic", "--data", "input=data"};
    expect_refused("sweep quick --dry-run --data . --set input=synthetic", 64, unread);
    expect_refused("gate --aa quick --data . --set input=synthetic", 64, unread);
    expect_refused("submit quick --site nyu --dry-run --data . --set input=synthetic", 64, unread);
    expect_refused("train resnet50-imagenet --data .", 64, {"is synthetic", "add --input data"});
    expect_refused("sweep frameworks-gpt2 --dry-run --data .", 64,
                   {"a program of your own reads what its command names", "--data"});
    expect_refused("sweep amdahl --dry-run --data .", 64, {"generates its own samples", "--data"});
  }
  // What is there comes first.
  shell("echo '{\"name\": \"mine\", }' > quick.json");
  expect_refused("sweep quick.json --dry-run", 65, {"quick.json", "workload"});
}

// A job's log has no terminal: its tables are whole, and its sentences are wrapped.
// Each published table, by each verb that reads studies.
TEST_F(CliVerbs, AnswersAreScreens) {
  const std::filesystem::path published =
      std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference";
  std::size_t seen = 0;
  for (const auto& each : std::filesystem::directory_iterator(published)) {
    if (!each.is_directory()) continue;
    for (const std::string verb : {"report", "explain", "best", "history", "predict --gpus 64"}) {
      const std::string command = "paceline " + verb + " " + each.path().string();
      const Ran ran = shell("COLUMNS=100 " + command);
      if (ran.code != 0) continue;  // it has no base, or no dates
      ++seen;
      EXPECT_LE(std::ranges::count(ran.out, '\n'), 30) << command;
      for (const std::string& line : split(ran.out, '\n')) {
        EXPECT_LE(display_width(line), 100U) << command;
      }
    }
  }
  EXPECT_GT(seen, 40U);
}

TEST_F(CliVerbs, WhatIsPipedIsWholeAndATerminalGetsWhatFits) {
  const std::string study = " '" + kStudy + "'";
  for (const std::string& words :
       {"report --no-plots --base best" + study, "explain --base best" + study, "best" + study,
        std::string("doctor"), std::string("list parameters"), std::string("list backends")}) {
    const std::string command = "paceline " + words;
    const auto longest = [&](const std::string& columns) {
      const Ran ran = expect_success(shell("unset COLUMNS; " + columns + command + " | cat"));
      std::size_t most = 0, start = 0;
      for (std::size_t end; (end = ran.out.find('\n', start)) != ran.out.npos; start = end + 1) {
        most = std::max(most, display_width(ran.out.substr(start, end - start)));
      }
      return most;
    };
    EXPECT_LE(longest(""), 80U) << words;
    EXPECT_LE(longest("COLUMNS=80 "), 80U) << words;
    const bool has_long_lines = words != "doctor";  // on some machines
    EXPECT_GT(longest("COLUMNS=200 "), has_long_lines ? 80U : 0U) << words;
  }
  // What is taken changes what is printed.
  for (const std::string verb : {"report --base best", "explain --base best", "best"}) {
    const std::string call = "COLUMNS=100 paceline " + verb + study;
    EXPECT_GT(shell(call + " --verbose").out.size(), shell(call).out.size()) << verb;
  }
  const Ran whole = expect_success(
      shell("unset COLUMNS; paceline report --verbose --no-plots --base best" + study + " | cat"));
  expect_parts(whole.out, {"cpus-\n", "GPU        CPUs per", "Hoefler"});
}

}  // namespace
}  // namespace paceline

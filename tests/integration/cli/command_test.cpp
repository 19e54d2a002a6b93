// Workload command as a user has it: somebody's own program in a study.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/core/file.h"
#include "engine/core/text.h"
#include "results/run_record.h"
#include "results/store.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr char kRate[] = R"j({"samples_per_second": {"line": "rate ([^ ]+)"}})j";

class CliCommand : public Cli {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder() / name) << text;
  }
  // A study "s" of this program; `more` are further keys.
  Ran sweep(const std::string& command, const std::string& results,
            const std::string& more = "") const {
    fs::remove_all(folder() / "r");
    write("s.json", R"j({"name": "s", "workload": "command", "command": )j" + command +
                        (results.empty() ? "" : ", \"results\": " + results) +
                        (more.empty() ? "" : ", " + more) + "}");
    return paceline("sweep s.json --results r --no-report");
  }
  Json record(const std::string& name) const {
    return Json::parse(read_text(folder() / "r/s" / name));
  }
  // The run failed, in one line that says all of this.
  void expect_failed(const Ran& ran, const std::vector<std::string>& parts) const {
    EXPECT_EQ(ran.code, 1) << ran.err;
    for (const std::string& part : parts) {
      EXPECT_TRUE(contains(ran.err, part)) << "no " << part << " in " << ran.err;
    }
    const StoreContent content = load_store(folder() / "r/s");
    ASSERT_EQ(content.records.size(), 1U);
    EXPECT_TRUE(content.rejected.empty());
    EXPECT_FALSE(content.records.front()->completed());
  }
};

TEST_F(CliCommand, HasPointsRepeatsRecordsAndATable) {
  const std::string program =
      R"j(["sh", "-c", "echo rate $(({batch_per_replica} * {gpus})) > {out}/log; )j"
      R"j(cat {out}/log; sleep 0.4; for t in 1 0.9 1.1; do echo step $t s; done; )j"
      R"j(echo '{\"train\": {\"seconds\": [0.2, 0.3]}}' > {out}/r.json"])j";
  expect_success(sweep(program, R"j({"samples_per_second": {"line": "rate ([0-9]+)"},
      "step_seconds": {"line": "step ([0-9.]+) s"},
      "fit_seconds": {"json": "$.train.seconds", "file": "{out}/r.json", "pick": "max"}})j",
                       R"j("fixed": {"batch_per_replica": 64}, "repeats": 2,
      "axes": {"gpus": [1, 2]})j"));
  const Json made = record("gpus=2/2.1.json");
  EXPECT_EQ(made["throughput"]["samples_per_second"], 128);
  EXPECT_EQ(made["timing"]["fit_seconds"], 0.3);
  EXPECT_EQ(made["timing"]["step_seconds"][0]["p50"], 1);
  EXPECT_EQ(made["layout"]["replicas_are"], "cores");
  EXPECT_FALSE(made.contains("phases")) << "what only the engine knows";
  EXPECT_TRUE(fs::exists(folder() / "r/s/gpus=2/2.1.steps.gz"));
  const Ran again = paceline("sweep s.json --results r --no-report");
  EXPECT_TRUE(contains(again.err + again.out, "4 done already")) << again.err << again.out;
  // A changed recipe is another measurement.
  const Ran changed = paceline("sweep s.json --results r --dry-run --set batch_per_replica=32");
  expect_parts(changed.out, {"4 of 4 runs to do"});
  const Ran report = paceline("report r/s --format md");
  expect_parts(report.out, {"fit seconds: as the program reports them"});
  expect_no_parts(report.out, {"barrier to barrier"});
  EXPECT_EQ(paceline("sweep r/s/spec.json --results other --dry-run").code, 0)
      << "the kept spec finds the program's folder";
}

// A study from a shared folder or an unpacked tar.
TEST_F(CliCommand, FollowsNoLinkOfAStudyThatSomebodyPrepared) {
  write("s.json", R"j({"name": "s", "workload": "command", "command": ["true"]})j");
  for (const std::string name : {"runs", "report", "gpus=1", "runs/gpus=1.1.start"}) {
    SCOPED_TRACE(name);
    for (const char* each : {"r", "mine"}) fs::remove_all(folder() / each);
    fs::create_directories(folder() / "mine/gpus=1.1");
    write("mine/gpus=1.1/precious", "precious");
    const bool is_file = name.ends_with(".start");
    fs::create_directories((folder() / "r/s" / name).parent_path());
    fs::create_symlink(folder() / (is_file ? "mine/gpus=1.1/precious" : "mine"),
                       folder() / "r/s" / name);
    const Ran ran = paceline("sweep s.json --results r");
    if (!is_file) {
      EXPECT_TRUE(ran.code == 1 || ran.code == 65) << ran.code;
      expect_parts(ran.err + ran.out, {"r/s/" + name + ": a link is here", "remove it"});
    }
    EXPECT_EQ(read_text(folder() / "mine/gpus=1.1/precious"), "precious");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder() / "mine"), {}), 1);
  }
}

// Of the profiler of PyTorch, which here another run left.
TEST_F(CliCommand, TracesGivePhases) {
  const auto run = [&](const std::string& trace, const std::string& printed = "",
                       const std::string& more = "") {
    return sweep(R"j(["sh", "-c", "cp )j" PACELINE_SOURCE_DIR
                 R"j(/tests/data/kineto/ddp-gloo-rank*.gz {out}; echo rate 5; )j" +
                     printed + R"j("])j",
                 R"j({"samples_per_second": {"line": "rate ([^ ]+)"})j" + more + "}",
                 R"j("fixed": {"batch_per_replica": 16}, "axes": {"gpus": [2]}, "trace": ")j" +
                     trace + "\"");
  };
  const std::string by_rank = "{out}/ddp-gloo-rank{rank}.json.gz";
  expect_success(run(by_rank));
  const Json made = record("gpus=2/1.1.json");
  EXPECT_EQ(made["phases"].size(), 2U) << json_text(made);
  EXPECT_EQ(made["profile"]["steps"], 3);
  EXPECT_EQ(made["throughput"]["steps"], 3);
  EXPECT_EQ(made["throughput"]["samples"], 96);
  EXPECT_EQ(made["plan"]["bucket_bytes"].size(), 2U);
  EXPECT_TRUE(fs::exists(folder() / "r/s/gpus=2/1.1.steps.gz"));
  expect_no_parts(succeed("explain r/s").out, {"have no phases of a step"});

  // Three steps stand for all.
  constexpr char kAll[] = R"j(, "steps": {"line": "steps ([0-9]+)"})j";
  ASSERT_EQ(run("{out}/*.json.gz", "echo steps 3000", kAll).code, 0);
  const Json all = record("gpus=2/1.1.json");
  EXPECT_NEAR(all["phases"][0]["step"].get<double>(),
              1000 * made["phases"][0]["step"].get<double>(), 1e-3);
  EXPECT_FALSE(all["flags"]["traced"].get<bool>());
  ASSERT_EQ(run(by_rank, "echo steps 20", kAll).code, 0);
  EXPECT_TRUE(record("gpus=2/1.1.json")["flags"]["traced"].get<bool>());

  expect_failed(run("{out}/none-*.json"), {"the program left no trace", "none-*.json"});
  expect_failed(run("{out}/ddp-gloo-rank{rank}.json"), {"left no trace", "rank0.json"});
}

TEST_F(CliCommand, AnEditedProgramIsAnotherBuild) {
  write("train.sh", "echo rate 7\n");
  expect_success(
      sweep(R"j(["sh", "train.sh"])j", R"j({"samples_per_second": {"line": "rate ([0-9]+)"}})j"));
  const std::string again = "sweep s.json --results r --no-report ";
  expect_no_parts(paceline(again + "--dry-run").out, {"has changed"});
  write("train.sh", "sleep 0.002\necho rate 6\n");
  const Ran kept = paceline(again);
  const std::string changed = "the program has changed since 1 of the done runs";
  EXPECT_TRUE(contains(kept.err + kept.out, changed)) << kept.err;
  expect_parts(paceline(again + "--dry-run").out, {changed, "1 of 1 done, 1 by another build"});
  expect_parts(paceline("report r/s").out, {"of an older train.sh", "--new-build"});
  const Json marked = Json::parse(paceline("report r/s --format json").out)["tables"][0]["rows"][0];
  expect_parts(marked["label"], {"of an older train.sh"});
  EXPECT_EQ(record("gpus=1/1.1.json")["throughput"]["samples_per_second"], 7);
  const Ran made = succeed(again + "--new-build");
  EXPECT_TRUE(contains(made.err + made.out, "1 to do")) << made.err << made.out;
  expect_no_parts(paceline(again + "--dry-run").out, {"has changed"});
  const Ran report = paceline("report r/s --format json");
  EXPECT_EQ(Json::parse(report.out).at("tables")[0]["rows"][0]["runs"], 1) << report.out;
  expect_parts(report.out, {"1 run of earlier builds"});
  const Ran metrics = paceline("export r/s --format github-action");
  EXPECT_NEAR(Json::parse(metrics.out).at(0).at("value"), 1.0 / 6, 1e-6) << metrics.out;
  expect_parts(metrics.err, {"1 run of earlier builds"});
}

TEST_F(CliCommand, AProgramOfYourOwnIsGatedAgainstItself) {
  sweep(R"j(["echo", "rate 7"])j", R"j({"samples_per_second": {"line": "rate ([0-9]+)"}})j");
  const Ran ran = paceline("gate --aa s.json --until-decided");
  EXPECT_TRUE(ran.code == 0 || ran.code == 2) << ran.err;  // undecided on a busy machine
  expect_parts(ran.err, {"first: echo 'rate 7'\nsecond: echo 'rate 7'"});
  expect_parts(ran.out, {"second echo 'rate 7' against first echo 'rate 7'"});
}

TEST_F(CliCommand, SeveralProgramsAreRowsOfOneTable) {
  write("two.json", R"j({"name": "two", "workload": "command", "axes": {"gpus": [1, 2]},
    "programs": {
      "slow": {"command": ["echo", "rate {gpus}0"], "results": )j" +
                        std::string(kRate) + R"j(},
      "fast": {"command": ["echo", "rate {gpus}5"], "results": )j" +
                        kRate + R"j(}}})j");
  succeed("sweep two.json --results r --no-report");
  const Ran report = paceline("report r/two --format json");
  const Json tables = Json::parse(report.out).at("tables");
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0]["rows"].size(), 4U);
  EXPECT_TRUE(tables[0]["title"].get<std::string>().starts_with("two, ")) << tables[0]["title"];
  EXPECT_EQ(tables[0]["reference_program"], "slow") << "the first of the spec";
  for (const Json& row : tables[0]["rows"]) {
    const bool is_fast = row["program"] == "fast";
    EXPECT_NEAR(row["against_reference"].get<double>(),
                !is_fast           ? 1
                : row["gpus"] == 1 ? 1.5
                                   : 1.25,
                1e-9)
        << row;
  }
  expect_parts(paceline("report r/two --format md").out, {"against slow: speed-up over"});
  for (const char* format : {"github-action", "openmetrics"}) {
    succeed(std::string("export r/two --out export.txt --format ") + format);
    EXPECT_TRUE(contains(read_text(folder() / "export.txt"), "two gpus=2,program=fast")) << format;
  }
  expect_parts(report.out, {"fast"});
  EXPECT_FALSE(contains(paceline("report r/two --format csv").out, "fast@")) << "the hash is ours";
}

TEST_F(CliCommand, UnequalWorkIsReported) {
  const auto study = [&](const std::string& parameters, const std::string& precision) {
    fs::remove_all(folder() / "r");
    const std::string results = R"j({"samples_per_second": {"line": "rate (.+)", "pick": "first"},
      "parameter_count": {"key": "parameters", "pick": "first"}, "precision": {"key": "precision"}})j";
    write("two.json", R"j({"name": "two", "workload": "command",
      "fixed": {"gpus": 2, "cpus_per_replica": 1, "oversubscribe": true}, "programs": {
      "a": {"processes": "replica", "command": ["printf", "rate 5\\nparameters=100\\nprecision=fp32\\n"],
            "results": )j" +
                          results + R"j(}, "b": {"command": ["printf", "rate 7\\nparameters=)j" +
                          parameters + "\\nprecision=" + precision +
                          "\\n\"], \"results\": " + results + "}}}");
    succeed("sweep two.json --results r --no-report");
    return paceline("report r/two --format md").out;
  };
  const std::string equal = study("100", "FP32");
  expect_parts(equal, {"all programs report the same parameters, precision",
                       "where a program does not report it: global batch (a, b)"});
  expect_no_parts(equal, {"| processes"});
  expect_parts(study("200", "bf16"), {"unequal work: 100 parameters, fp32",
                                      "unequal work: 200 parameters, bf16", "UNEQUAL WORK"});
}

TEST_F(CliCommand, ItsPrecisionIsThatOfThePoint) {
  const std::string source = R"j({"samples_per_second": {"line": "rate (.+)"},
    "precision": {"line": "in ([a-z0-9]+)"}})j";
  const std::string fixed = R"j("fixed": {"precision": "fp32"})j";
  ASSERT_EQ(sweep(R"j(["printf", "rate 5\nin {precision}\nin fp32\n"])j", source, fixed).code, 0);
  EXPECT_EQ(record("gpus=1/1.1.json")["provenance"]["program"]["precision"], "fp32");
  expect_failed(sweep(R"j(["printf", "rate 5\nin bf16\n"])j", source, fixed),
                {"trained in bf16", "the point has precision fp32"});
  expect_failed(sweep(R"j(["printf", "rate 5\nin half\n"])j", source), {"\"half\"", "known: fp32"});
  expect_failed(sweep(R"j(["printf", "rate 5\nin fp32\nin bf16\n"])j", source),
                {"different values (line 2, line 3)"});
}

TEST_F(CliCommand, FrameworksDoEqualWork) {
  if (shell("python3 -c 'import torch, tensorflow'").code != 0) {
    GTEST_SKIP() << "python3 has no torch and tensorflow";
  }
  succeed("sweep frameworks --repeats 1 --results r --no-report");
  const std::string report = paceline("report r/frameworks --format md").out;
  expect_parts(report, {"all programs report the same parameters, precision, global batch"});
}

TEST_F(CliCommand, PytorchTrainsGpt) {
  if (shell("python3 -c 'import torch'").code != 0) GTEST_SKIP() << "python3 has no torch";
  const auto train = [&](const std::string& options) {
    const Ran ran =
        expect_success(shell("python3 -W ignore '" PACELINE_SOURCE_DIR
                             "/sweeps/frameworks/torch_gpt.py' --warmup 1 --threads 1 " +
                             options));
    return Json::parse(ran.out);
  };
  const Json whole = train("--model gpt-tiny --context 32 --steps 4 --batch 4");
  EXPECT_NEAR(whole.at("first_loss").get<double>(), std::log(256), 0.3) << "as good as chance";
  EXPECT_LT(whole.at("loss"), whole.at("first_loss"));
  EXPECT_EQ(whole.at("tokens"), 4 * 4 * 32);
  const Json parts =
      train("--model gpt-tiny --context 32 --steps 4 --batch 2 --gradient-accumulation 2");
  EXPECT_EQ(parts.at("tokens_per_step"), whole.at("tokens_per_step"));
  EXPECT_NEAR(parts.at("loss").get<double>(), whole.at("loss").get<double>(), 1e-2)
      << "the same step in two parts";
  EXPECT_EQ(train("--context 8 --steps 1 --batch 1").at("parameter_count"), 123695616);

  succeed(
      "sweep frameworks-gpt2 --set program=gpt-tiny --set steps=2 --repeats 1 --results r "
      "--no-report");
  expect_parts(paceline("report r/frameworks-gpt2 --format md").out, {"tokens/s", "2 replicas"});
}

TEST_F(CliCommand, TheFastestPeerIsChosenByPairedRuns) {
  if (shell("command -v python3").code != 0) GTEST_SKIP() << "no python3 on the PATH";
  expect_success(shell("python3 -B '" PACELINE_SOURCE_DIR "/tests/peers/compare_test.py'"));
}

TEST_F(CliCommand, DoctorNamesTheFrameworksOfPython) {
  fs::create_directory(folder() / "bin");
  write("bin/python3",
        "#!/bin/sh\ncase \"$3\" in *horovod*) echo not installed;; *) echo 9.8.7;; esac\n");
  fs::permissions(folder() / "bin/python3", fs::perms::owner_all);
  expect_parts(shell("PATH=\"$PWD/bin:$PATH\" '" PACELINE_BINARY "' doctor --frameworks").out,
               {"PyTorch            9.8.7", "Horovod            not installed"});
}

TEST_F(CliCommand, WordsReachTheProgramAsTheyAre) {
  const Ran ran = sweep(R"j(["printf", "[%s]\\n", "a b", "it's", "{{gpus}}", "", "${HOME}",
                            "rate 3"])j",
                        R"j({"samples_per_second": {"line": "rate ([0-9]+)"}})j");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(read_text(folder() / "r/s/logs/gpus=1.1.1.log"),
            "[a b]\n[it's]\n[{gpus}]\n[]\n[${HOME}]\n[rate 3]\n");
}

TEST_F(CliCommand, EachReplicaIsARankWithItsOwnCpus) {
  expect_success(
      sweep(R"j(["sh", "-c", "echo rank $RANK of $WORLD_SIZE; test {rank} = 1 || echo rate 5"])j",
            kRate, R"j("processes": "replica", "fixed": {"gpus": 2, "oversubscribe": true})j"));
  expect_parts(read_text(folder() / "r/s/logs/gpus=2.1.1.log"), {"rank 0 of 2", "rank 1 of 2"});
  EXPECT_EQ(record("gpus=2/1.1.json")["layout"]["ntasks"], 2);
  expect_failed(sweep(R"j(["sh", "-c", "test {rank} = 0 && sleep 100; exit 4"])j", kRate,
                      R"j("processes": "replica", "fixed": {"gpus": 2, "oversubscribe": true})j"),
                {"rank 1 of s ended with exit code 4"});
}

// Each rank and each stream writes whole lines, in however many pieces.
TEST_F(CliCommand, LinesOfWritersAreNotCutIntoEachOther) {
  const std::string pieces =
      R"j(["sh", "-c", "if [ $RANK = 0 ]; then printf 'rate 12'; sleep 0.3; echo 34; )j"
      R"j(else sleep 0.1; echo 000000; fi"])j";
  expect_success(sweep(pieces, kRate, R"j("processes": "replica", "axes": {"gpus": [2]})j"));
  EXPECT_EQ(record("gpus=2/1.1.json")["throughput"]["samples_per_second"], 1234);
  expect_success(
      sweep(R"j(["sh", "-c", "printf 'rate 12'; sleep 0.1; echo warning >&2; echo 34"])j", kRate));
  EXPECT_EQ(record("gpus=1/1.1.json")["throughput"]["samples_per_second"], 1234);
}

// Also where the program starts its ranks itself, into one pipe; behind a launcher that passes on
// what they print nobody knows who wrote a part of a line.
TEST_F(CliCommand, LinesOfItsOwnRanksAreJoinedByProcess) {
  replace_file(folder() / "ranks.sh",
               "rm -f begun done; (printf 'rate 12'; touch begun; until [ -e done ]; do sleep 0.1; "
               "done; echo 34) & "
               "(until [ -e begun ]; do sleep 0.1; done; printf '000'; sleep 0.1; echo 0; touch "
               "done) & wait\n");
  const std::string gpus = R"j("axes": {"gpus": [2]}, "fixed": {"oversubscribe": true})j";
  expect_success(sweep(R"j(["sh", "ranks.sh"])j", kRate, gpus));
  EXPECT_EQ(record("gpus=2/1.1.json")["throughput"]["samples_per_second"], 1234);
  fs::rename(folder() / "ranks.sh", folder() / "mpirun");
  expect_failed(sweep(R"j(["sh", "mpirun"])j", kRate, gpus),
                {"passed on in parts (line 1)", "print whole lines"});
  replace_file(folder() / "mpirun", "printf 'step'; sleep 0.1; echo ' 1'; echo rate 12\n");
  expect_success(sweep(R"j(["sh", "mpirun"])j", kRate, gpus));
}

// What is wrong with each point once is wrong with its repeats.
TEST_F(CliCommand, AFirstRoundWithoutOneSuccessEndsTheSweep) {
  const std::string rounds = R"j("axes": {"gpus": [1, 2]}, "repeats": 3)j";
  const Ran ran = sweep(R"j(["false"])j", kRate, rounds);
  EXPECT_EQ(ran.code, 1) << ran.err;
  expect_parts(ran.err, {"all 2 runs failed, so 4 more were not started"});
  EXPECT_EQ(load_store(folder() / "r/s").records.size(), 2U);
  // One success is enough to go on.
  const Ran some = sweep(R"j(["sh", "-c", "[ {gpus} = 1 ] && echo rate 5"])j", kRate, rounds);
  EXPECT_EQ(load_store(folder() / "r/s").records.size(), 6U) << some.err;
}

// A run is not repeated for numbers that it printed already.
TEST_F(CliCommand, WhatItPrintedIsReadAgainByANewDefinition) {
  write("train.sh", "echo run >> runs; echo 'rate 5 samples/s'; echo 'loss 2'\n");
  const auto with = [&](const std::string& results, const std::string& argument = "") {
    write("s.json", R"j({"name": "s", "workload": "command", "repeats": 2, "axes": {"gpus": [1]},
        "command": ["sh", "train.sh", ")j" +
                        argument + R"j("], "results": )j" + results + "}");
    return paceline("sweep s.json --results r --no-report");
  };
  const auto runs = [&] { return read_text(folder() / "runs").size() / 4; };
  EXPECT_EQ(with(R"j({"samples_per_second": {"line": "speed ([0-9]+)"}})j").code, 1);
  EXPECT_EQ(runs(), 1U);
  expect_parts(expect_success(with(kRate)).err, {"repeat 1: 5 samples/s, read again"});
  EXPECT_EQ(runs(), 2U);
  EXPECT_EQ(record("gpus=1/1.2.json")["throughput"]["samples_per_second"], 5);
  const std::string more =
      R"j({"samples_per_second": {"line": "rate ([0-9]+)"}, "train_loss": {"line": "loss {number}"}})j";
  expect_success(with(more));
  EXPECT_EQ(runs(), 2U);
  EXPECT_EQ(record("gpus=1/2.2.json")["quality"]["epochs"][0]["train_loss"], 2);
  EXPECT_TRUE(record("gpus=1/2.2.json")["session"].get<std::string>().starts_with(
      record("gpus=1/2.1.json")["session"].get<std::string>() + "+"));
  EXPECT_TRUE(load_store(folder() / "r/s").rejected.empty());
  expect_success(with(kRate, "other"));
  EXPECT_EQ(runs(), 4U);
  write("train.sh", "echo run >> runs; echo 'rate 6'\n");
  expect_success(with(R"j({"samples_per_second": {"line": "rate {number}"}})j", "other"));
  EXPECT_EQ(runs(), 6U);
}

TEST_F(CliCommand, WithoutResultsItsWholeTimeCounts) {
  ASSERT_EQ(sweep(R"j(["sleep", "0.3"])j", "").code, 0);
  const Json made = record("gpus=1/1.1.json");
  EXPECT_GE(made["timing"]["fit_seconds"], 0.3);
  expect_parts(made["provenance"]["time_is"].get<std::string>(), {"whole program"});
}

TEST_F(CliCommand, TimesAloneMakeATable) {
  const std::string program = R"j(["sh", "-c", "echo took $(({gpus} + 2)).{repeat}"])j",
                    time = R"j({"fit_seconds": {"line": "took {number}", "scale": 0.01}})j",
                    sizes = R"j("axes": {"gpus": [1, 2]}, "repeats": 3)j";
  expect_success(sweep(program, time, sizes));
  expect_parts(succeed("report r/s").out,
               {"same work assumed, as the runs state only times", "work=grows", "0.76"});
  for (const char* verb : {"best", "explain", "predict --gpus 4", "report --sheet",
                           "plan s.json --detect 5% --pilot"}) {
    expect_success(paceline(verb + std::string(" r/s")));
  }
  // What the work is says nothing of the runs, so none is made again.
  write("s.json", R"j({"name": "s", "workload": "command", "fixed": {"work": "grows"},
                       "command": )j" +
                      program + ", \"results\": " + time + ", " + sizes + "}");
  expect_parts(succeed("sweep s.json --results r").err,
               {"all 6 runs are done; see paceline report r/s"});
  expect_parts(succeed("report r/s").out, {"weak scaling", "work/s", "1.52"});
  EXPECT_EQ(load_store(folder() / "r/s").records.size(), 6U);
}

TEST_F(CliCommand, AResultOfOnesOwnUnitGoesThroughAllVerbs) {
  expect_success(sweep(R"j(["sh", "-c", "echo Performance: $((100 * {gpus})).{repeat}  0.2"])j",
                       R"j({"performance": {"line": "Performance: {number}", "unit": "ns/day",
                                            "better": "more"}})j",
                       R"j("axes": {"gpus": [1, 2]}, "repeats": 3)j"));
  expect_parts(succeed("report r/s --verbose").out,
               {"ns/day: performance, as the program reports it"});
  std::string all;
  for (const char* verb :
       {"report r/s", "report r/s --format csv", "best r/s", "predict r/s --gpus 4",
        "report --sheet r/s", "gate --aa s.json --rounds 3", "plan s.json --detect 5% --pilot r/s",
        "export r/s --format openmetrics"}) {
    const Ran ran = paceline(verb);
    EXPECT_TRUE(ran.code == 0 || ran.code == 2) << ran.err;  // undecided on a busy machine
    all += ran.out;
  }
  expect_parts(all, {"ns/day", "ns_per_day"});
  expect_no_parts(all, {"samples"});
}

TEST_F(CliCommand, TheMfuOfAnyProgram) {
  const std::string results = R"j({"tokens_per_second": {"line": "rate {number}"},
                                   "parameter_count": {"line": "parameters {number}"}})j";
  const auto mfu = [&](const std::string& fixed) {
    expect_success(sweep(R"j(["printf", "rate 100000\\nparameters 1000000\\n"])j", results,
                         "\"fixed\": {" + fixed + "}"));
    return succeed("report r/s --verbose").out;
  };
  expect_parts(mfu(R"j("peak_tflops": 2)j"), {"MFU", "30.0 %", "6 operations"});
  expect_parts(mfu(R"j("peak_tflops": 0.5, "flops_per_item": 1e7)j"),
               {"200.0 %", "(flops_per_item)", "the MFU of 1 replica"});
}

TEST_F(CliCommand, ANumberIsFoundOnceAndFinite) {
  expect_failed(sweep(R"j(["true"])j", kRate), {"samples_per_second was not printed"});
  expect_failed(sweep(R"j(["printf", "rate 3\\nrate 4\\n"])j", kRate),
                {"found 2 times (line 1, line 2)", "\"pick\""});
  expect_failed(sweep(R"j(["echo", "rate nan"])j", kRate), {"\"nan\" (line 1)", "not finite"});
  expect_failed(sweep(R"j(["echo", "rate 0"])j", kRate), {"must be above 0"});
  expect_failed(sweep(R"j(["echo", "97.4 %"])j", R"j({"test_accuracy": {"line": "([0-9.]+) %"}})j"),
                {"\"%\" beside it", "\"scale\": 0.01"});
  expect_success(sweep(R"j(["echo", "97.4 %"])j",
                       R"j({"test_accuracy": {"line": "([0-9.]+) %", "scale": 0.01}})j"));
  expect_failed(sweep(R"j(["echo", "rate fast"])j", kRate), {"\"fast\"", "not a number"});
  expect_failed(sweep(R"j(["printf", "rate 12"])j", kRate), {"without an end", "line break"});
  expect_success(
      sweep(R"j(["echo", "took 850"])j", R"j({"fit_seconds": {"line": "took {number}"}})j"));
  expect_parts(succeed("report r/s").out, {"fit seconds are more than the program took"});
  expect_failed(sweep(R"j(["true"])j", R"j({"fit_seconds": {"csv": "t", "file": "{out}/a.csv"}})j"),
                {"a.csv", "is not there"});
  expect_failed(sweep(R"j(["sh", "-c", "echo a,time > {out}/a.csv; echo 1,2 >> {out}/a.csv"])j",
                      R"j({"fit_seconds": {"csv": "tme", "file": "{out}/a.csv"}})j"),
                {"no column \"tme\"", "did you mean \"time\""});
}

TEST_F(CliCommand, PartsOfNumbersFailTheRun) {
  const char rate[] = R"j({"samples_per_second": {"line": "rate ([0-9.]+)"}})j";
  expect_failed(sweep(R"j(["echo", "rate 6.25e+04"])j", rate),
                {"is \"6.25\" (line 1), and \"e+04\" beside it may change", "write {number}"});
  expect_success(sweep(R"j(["echo", "rate 6.25e+04"])j",
                       R"j({"samples_per_second": {"line": "rate {number}"}})j"));
  EXPECT_EQ(record("gpus=1/1.1.json")["throughput"]["samples_per_second"], 62500);
}

// It would wait until somebody reads.
TEST_F(CliCommand, ADearExpressionDoesNotSlowItDown) {
  expect_success(sweep(R"j(["sh", "-c", "head -c 2000 /dev/zero | tr '\\0' a | fold -w 200; )j"
                       R"j(head -c 400000 /dev/zero | tr '\\0' . | fold -w 200; echo samples 7"])j",
                       R"j({"samples": {"line": "(?:a+a+)+b|samples ([0-9]+)"}})j"));
  const Json made = record("gpus=1/1.1.json");
  EXPECT_EQ(made["throughput"]["samples"], 7);
  EXPECT_LT(made["timing"]["fit_seconds"].get<double>(), 30);
}

TEST_F(CliCommand, SamplesGiveStepsAndUnseenValuesAreReported) {
  const Ran ran =
      expect_success(sweep(R"j(["sh", "-c", "echo samples $(({gpus} * 640)); echo rate 100"])j",
                           R"j({"samples": {"line": "samples {number}"},
                             "samples_per_second": {"line": "rate {number}"}})j",
                           R"j("fixed": {"batch_per_replica": 64, "steps": 9},
      "axes": {"gpus": [1, 2]})j"));
  expect_parts(ran.out + ran.err, {"note: no placeholder {steps} shows steps 9"});
  expect_no_parts(ran.out + ran.err, {"{batch_per_replica}"});
  EXPECT_EQ(record("gpus=2/1.1.json")["throughput"]["steps"], 10);
  expect_parts(succeed("report r/s").out, {"weak scaling"});
}

TEST_F(CliCommand, SourcesOfResults) {
  const auto expect_rate = [&](const std::string& command, const std::string& source) {
    expect_success(sweep(command, "{\"samples_per_second\": " + source + "}"));
    EXPECT_EQ(record("gpus=1/1.1.json")["throughput"]["samples_per_second"], 7) << source;
  };
  expect_rate(R"j(["echo", "{\"a\": {\"b\": [1, 7]}}"])j", R"j({"json": "$.a.b[1]"})j");
  expect_rate(R"j(["printf", "x\\n{\"a\": 1}\\n{\"a\": 7}\\nend"])j", R"j({"json_line": "$.a"})j");
  expect_rate(R"j(["echo", "speed: 7"])j", R"j({"key": "speed"})j");
  expect_rate(R"j(["printf", "10%%\\rrate 7000\\r"])j",
              R"j({"line": "rate (.+)", "scale": 0.001})j");
  expect_rate(R"j(["sh", "-c", "echo e,s > {out}/a; echo 1,6 >> {out}/a; echo 2,8 >> {out}/a"])j",
              R"j({"csv": "s", "file": "{out}/a", "pick": "mean"})j");
}

// Our own training, as anybody's program: the event files and the record say the same.
TEST_F(CliCommand, ReadsTensorBoardEventsAndRecords) {
  const Ran ran =
      sweep(std::string("[\"") + PACELINE_BINARY +
                R"j(", "train", "mnist-mlp", "--input=synthetic", "--epochs=2", "--train-limit=640",
           "--evaluate=none", "--cpus-per-task={cpus_per_task}", "--tensorboard={out}/tb",
           "--record={out}/r.json", "--quiet"])j",
            R"j({"epoch_seconds": {"events": "epoch_seconds", "file": "{out}/tb"},
           "train_loss": {"events": "epoch_loss", "file": "{out}/tb", "pick": "last"},
           "parameter_count": {"json": "$.plan.parameter_count", "file": "{out}/r.json"},
           "fit_seconds": {"json": "$.timing.fit_seconds", "file": "{out}/r.json"}})j",
            R"j("fixed": {"cpus_per_task": 1})j");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json of_study = record("gpus=1/1.1.json");
  const Json own = record("runs/gpus=1.1/r.json");
  EXPECT_EQ(of_study["timing"]["fit_seconds"], own["timing"]["fit_seconds"]);
  EXPECT_EQ(of_study["plan"]["parameter_count"], own["plan"]["parameter_count"]);
  EXPECT_EQ(of_study["timing"]["epoch_seconds"].size(), 2U);
  EXPECT_NEAR(of_study["quality"]["epochs"][0]["train_loss"].get<double>(),
              own["quality"]["epochs"][1]["train_loss"].get<double>(), 1e-5);
}

TEST_F(CliCommand, HowItEndsIsReported) {
  expect_failed(sweep(R"j(["sh", "-c", "echo no memory; exit 3"])j", kRate),
                {"s ended with exit code 3; its last line: no memory (exit code 1)"});
  expect_failed(sweep(R"j(["sh", "-c", "echo 'ValueError: no data'; echo =====; exit 1"])j", kRate),
                {"s ended with exit code 1; its last error: ValueError: no data (exit code 1)"});
  expect_failed(sweep(R"j(["sh", "-c", "kill -SEGV $$"])j", kRate),
                {"s was killed by SIGSEGV (exit code 1)"});
  expect_failed(sweep(R"j(["no-such-program"])j", kRate), {"no-such-program: cannot be started"});
  expect_failed(sweep(R"j(["sleep", "100"])j", kRate, R"j("timeout_seconds": 1)j"),
                {"took longer"});
  expect_failed(
      sweep(R"j(["true"])j", kRate, R"j("setup": ["sh", "-c", "echo no module; exit 9"])j"),
      {"setup of s ended with exit code 9", "no module"});
}

TEST_F(CliCommand, ADryRunNamesAnAbsentProgram) {
  write("there.sh", "echo rate 5\n");
  const auto plan = [&](const std::string& keys) {
    write("s.json", R"j({"name": "s", "workload": "command", )j" + keys + "}");
    return succeed("sweep s.json --dry-run").err;
  };
  const std::string absent = "not here: ./nothere.py, which program s starts";
  expect_parts(plan(R"j("command": ["./nothere.py"])j"), {absent});
  expect_parts(plan(R"j("command": ["sh"], "setup": ["./nothere.py"])j"), {absent});
  expect_parts(plan(R"j("command": ["torchrun", "-n", "2", "./nothere.py"])j"), {absent});
  EXPECT_TRUE(contains(plan(R"j("shell": true, "command": "python3 nothere.py | tee log")j"),
                       "not here: nothere.py, which program s starts"));
  EXPECT_TRUE(
      contains(plan(R"j("shell": true, "command": "./nothere.py --fast | tee log")j"), absent));
  for (const char* keys :
       {R"j("command": ["./there.sh"])j", R"j("command": ["sh", "there.sh"])j",
        R"j("command": ["sh", "--config=nothere.py", "{gpus}.py"])j",
        R"j("shell": true, "command": "cd .. && python3 nothere.py")j",
        R"j("command": ["{out}/made"])j", R"j("setup": ["make"], "command": ["./made"])j",
        R"j("shell": true, "command": "A=./b ./there.sh")j"}) {
    EXPECT_EQ(plan(keys), "") << keys;
  }
}

// It prints for ever, from a session of its own: nobody waits for it, and its time is not the
// run's.
TEST_F(CliCommand, WhatGoesOnPrintingIsNotWaitedForAndEnded) {
  // Its own time, as the machine may be busy.
  const std::string results = R"j({"samples_per_second": {"line": "rate {number}"},
                                   "steps": {"line": "{number} ms"}})j";
  for (const char* limit : {"", R"j("timeout_seconds": 6)j"}) {
    expect_success(sweep(
        R"j(["sh", "-c", "a=$(date +%s%3N); setsid sh -c 'echo $$ > pid; while :; do echo y; sleep 0.01; done' & )j"
        R"j(sleep 0.5; echo rate 7; echo $(($(date +%s%3N) - a)) ms"])j",
        results, limit));
    const Json made = record("gpus=1/1.1.json");
    EXPECT_EQ(made["throughput"]["samples_per_second"], 7);
    EXPECT_LT(made["provenance"]["program"]["seconds"].get<double>(),
              made["throughput"]["steps"].get<double>() / 1000 + 0.9);
    EXPECT_NE(shell("kill -0 $(cat pid)").code, 0);
  }
}

// The process that would end its leftovers is itself killed.
TEST_F(CliCommand, NothingIsLeftOfARunThatWasKilled) {
  expect_failed(
      sweep(
          R"j(["sh", "-c", "setsid sh -c 'echo $$ > pid; sleep 100; :' & sleep 0.5; kill -9 $PPID; sleep 9"])j",
          kRate),
      {"killed by SIGKILL"});
  EXPECT_NE(shell("kill -0 $(cat pid)").code, 0);
}

// As people write them, in a folder with a blank.
TEST_F(CliCommand, PlaceholdersInQuotesOfAShellAreNoCommands) {
  const std::string program =
      R"j("echo rate 5 > \"{out}/log\"; cat \"{out}/log\"; : '{weights}'")j";
  const auto run = [&](const std::string& weights) {
    fs::remove_all(folder() / "a b");
    write("s.json", R"j({"name": "s", "workload": "command", "shell": true, "command": )j" +
                        program + ", \"results\": " + kRate +
                        R"j(, "axes": {"gpus": [1], "weights": [")j" + weights + "\"]}}");
    return paceline("sweep s.json --results 'a b' --no-report");
  };
  EXPECT_EQ(run("x y").code, 0);
  const Ran ran = run("'; touch pwned; '");
  EXPECT_EQ(ran.code, 1);
  expect_parts(ran.err, {"{weights} stands in quotes"});
  EXPECT_EQ(run("$(touch pwned)").code, 1);
  EXPECT_FALSE(fs::exists(folder() / "pwned"));
}

// It left the group and the session of its starter.
TEST_F(CliCommand, LeavesNoProcessBehind) {
  expect_success(sweep(
      R"j(["sh", "-c", "setsid sh -c 'echo $$ > pid; sleep 100; :' & sleep 1; echo rate 5"])j",
      kRate));
  expect_parts(read_text(folder() / "r/s/logs/gpus=1.1.1.log"), {"running, which"});
  EXPECT_FALSE(fs::exists("/proc/" + std::string(trim(read_text(folder() / "pid")))));
}

TEST_F(CliCommand, BadSpecsAreRefusedBeforeTheFirstRun) {
  const auto refused = [&](const std::string& keys, int code,
                           const std::vector<std::string>& parts) {
    write("s.json", "{\"name\": \"s\", \"workload\": \"command\",\n" + keys + "}");
    expect_refused("sweep s.json --results r --dry-run", code, parts);
  };
  refused(R"j("command": ["x", "{gpu}"])j", 65, {"s.json:2", "{gpu}", "did you mean \"gpus\""});
  refused(R"j("command": ["x", "{steps}"])j", 64, {"{steps}, which has no value", "fixed or axes"});
  refused(R"j("command": ["x", "{rank}"])j", 65, {"{rank}", "\"processes\""});
  refused(R"j("command": ["x"], "trace": "{local_rank}.json")j", 65, {"s.json:2", "use {rank}"});
  refused(R"j("command": "x y")j", 65, {"s.json:2", "list of words", "\"shell\": true"});
  refused(R"j("command": ["x"], "directory": "nowhere")j", 65, {"nowhere", "is not a folder"});
  refused(R"j("command": ["x"], "results": {"rate": {"line": "a"}})j", 65, {"unknown result"});
  refused(R"j("command": ["x"], "results": {"samples_per_second": {"line": "a"}})j", 64,
          {"has 0 groups"});
  refused(R"j("command": ["x"], "results": {"samples_per_second": {"line": "([0-9"}})j", 64,
          {"not a regular expression"});
  refused(R"j("command": ["x"], "axes": {"batch_per_replica": [1, 2]})j", 65,
          {"batch_per_replica varies, and the command has no {batch_per_replica}"});
  refused(std::string("\"results\": ") + kRate, 65, {"has no \"command\""});
  refused(R"j("command": ["x"], "results": {"steps": {"key": "n", "among": "x"}})j", 65,
          {"\"among\"", "of printed lines"});
  refused(R"j("command": ["x"], "results": {"steps": {"key": "n", "not_between": ["a", "b"]}})j",
          65, {"\"not_between\"", "of printed lines"});
  refused(
      R"j("command": ["x"], "results": {"steps": {"line": "n {number}", "not_between": ["a"]}})j",
      65, {"list of two expressions", "^Validation"});
  refused(R"j("command": ["x"], "results": {"steps": {"line": "n ([0-9]+)", "among": "("}})j", 64,
          {"not a regular expression"});
  write("t.json", R"j({"name": "t", "workload": "command", "command": ["x"],
    "fixed": {"gpus": 2, "nodes": 2}})j");
  expect_refused("submit t.json --site nyu --dry-run", 64,
                 {"needs 2 nodes", "container of the site profile", "\"processes\""});
  expect_refused("submit t.json --site generic --fallback gloo --dry-run", 64,
                 {"--fallback", "no backend to fall back to"});
  write("t.json", R"j({"name": "t", "workload": "mnist-mlp", "command": ["x"]})j");
  expect_refused("sweep t.json --dry-run", 65, {"is for workload command"});
  expect_refused("train command", 64, {"only a study runs"});
  expect_refused("train mnist-mlp --program=x", 64, {"program is for workload command"});
}

// As builds of Paceline are, with what each prints.
TEST_F(CliCommand, TwoCommandsAreGatedSideBySide) {
  write("s.json", R"j({"name": "train", "workload": "command", "command": ["true"],
      "results": {"tokens_per_second": {"line": "rate {number}"}}, "axes": {"gpus": [1]}})j");
  const auto gate = [&](const std::string& ab) { return paceline("gate --ab " + ab + " --json"); };
  const Ran slower = gate("'echo rate 100' 'echo rate 70' s.json");
  ASSERT_EQ(slower.code, 1) << slower.err << slower.out;
  const Json check = Json::parse(slower.out)["checks"][0];
  EXPECT_EQ(check["verdict"], "regression");
  EXPECT_TRUE(contains(check["subject"], "train")) << check;
  expect_parts(slower.err, {"old: echo rate 100\nnew: echo rate 70"});
  const Ran piped =
      gate("'echo rate 100' 'echo rate  100 | cat' s.json --max-rounds 8");  // needs a shell
  EXPECT_TRUE(piped.code == 0 || piped.code == 2) << piped.err;  // undecided on a busy machine
  expect_parts(slower.out, {"compared by tokens/s"});
}

TEST_F(CliCommand, TwoCommandsNeedNoSpec) {
  const Ran ran = paceline("gate --ab 'sleep 0.05' 'sleep 0.5' --json");
  ASSERT_EQ(ran.code, 1) << ran.err << ran.out;
  EXPECT_GT(Json::parse(ran.out)["checks"][0]["change"].get<double>(), 1);
  const Ran failing = paceline("gate --ab 'true' 'false' --rounds 3");
  EXPECT_EQ(failing.code, 1) << failing.out;
  expect_parts(failing.out, {"none of 3 runs ended well"});
}

TEST_F(CliCommand, CommandsThatCannotBeGatedAreRefused) {
  expect_refused("gate --ab 'true' '' --rounds 3", 64, {"--ab is empty"});
  write("two.json", R"j({"name": "two", "workload": "command",
      "programs": {"a": {"command": ["true"]}, "b": {"command": ["true"]}}})j");
  expect_refused("gate --ab 'true' 'false' two.json", 64, {"it has 2 programs", "one program"});
  expect_refused("gate --ab 'true' 'echo {steps}' --rounds 3", 64, {"{steps}"});
}

}  // namespace
}  // namespace paceline

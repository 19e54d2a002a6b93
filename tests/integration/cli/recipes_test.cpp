// The recipes for CI systems and harnesses: well-formed, with options that exist, and run where the
// tool is here.
#include <map>
#include <regex>
#include <set>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kRecipes = PACELINE_SOURCE_DIR "/docs/recipes";

class Recipes : public Cli {
 protected:
  static std::vector<fs::path> files(const std::string& ending = "") {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(kRecipes)) {
      if (entry.path().string().ends_with(ending)) found.push_back(entry.path());
    }
    return found;
  }
  bool is_here(const std::string& command) const { return shell(command).code == 0; }
  // With the program under test as `paceline`.
  Ran with_program(const std::string& line) const {
    return shell("mkdir -p bin && ln -sf '" PACELINE_BINARY
                 "' bin/paceline && PATH=\"$PWD/bin:$PATH\" " +
                 line);
  }
};

TEST_F(Recipes, AreThoseThatTheDocsName) {
  const std::string docs = file_text(PACELINE_SOURCE_DIR "/docs/gate.md") +
                           file_text(PACELINE_SOURCE_DIR "/docs/harnesses.md");
  EXPECT_EQ(files().size(), 8U);
  for (const fs::path& file : files()) {
    EXPECT_TRUE(contains(docs, "recipes/" + file.filename().string())) << file;
  }
}

// "paceline VERB ... --option" and strings of options, which Python and YAML spread over lines.
TEST_F(Recipes, NameOptionsThatThereAre) {
  const std::map<std::string, std::set<std::string>> verbs = {
      {"github-actions.yml", {"gate"}},
      {"gitlab-ci.yml", {"gate"}},
      {"github-own-program.yml", {"gate"}},
      {"gitlab-own-program.yml", {"gate"}},
      {"gitlab-component.yml", {"gate", "sweep", "export"}},
      {"jube_paceline.yml", {"train"}},
      {"reframe_paceline.py", {"train"}},
      {"ramble_application.py", {"train"}}};
  const std::set<std::string> of_others = {"--global", "--add", "--mpi", "--tag", "--fetch"};
  const std::regex option("--[a-z][a-z-]+");
  for (const fs::path& file : files()) {
    std::string help;
    for (const std::string& verb : verbs.at(file.filename().string())) {
      help += paceline(verb + (verb == "train" || verb == "gate" ? " --help-all" : " --help")).out;
    }
    const std::string text = file_text(file);
    int found = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), option), end; it != end; ++it) {
      const std::string name = it->str();
      if (of_others.contains(name)) continue;
      ++found;
      EXPECT_TRUE(contains(help, name + " ") || contains(help, name + "\n"))
          << name << " in " << file;
    }
    EXPECT_GE(found, 4) << file;
    EXPECT_EQ(text.find('\t'), std::string::npos) << "YAML knows no tabs: " << file;
  }
}

TEST_F(Recipes, AreYaml) {
  if (!is_here("python3 -c 'import yaml'")) GTEST_SKIP() << "there is no python3-yaml";
  for (const fs::path& file : files(".yml")) {
    const Ran ran = shell(
        "python3 -c 'import sys, yaml; d = list(yaml.safe_load_all(open(sys.argv[1])))[-1]; "
        "assert d.get(\"jobs\") or d.get(\"step\") or "
        "list(d.values())[0][\"script\"]' '" +
        file.string() + "'");
    EXPECT_EQ(ran.code, 0) << file << ran.err;
  }
}

TEST_F(Recipes, ReFrameRunsItsCheck) {
  if (!is_here("command -v reframe")) GTEST_SKIP() << "no reframe on the PATH";
  const Ran ran =
      expect_success(with_program("reframe -c '" + (kRecipes / "reframe_paceline.py").string() +
                                  "' -r --performance-report --prefix=rfm"));
  expect_parts(ran.out, {"Ran 2/2", "throughput", "exposed_communication"});
}

TEST_F(Recipes, HooksForPreCommitRefuseWhatIsWrong) {
  if (!is_here("python3 -c 'import yaml'")) GTEST_SKIP() << "there is no python3-yaml";
  const std::string sources = PACELINE_SOURCE_DIR;
  std::ofstream(folder() / "bad.json") << R"({"name": "x", "partiton": "a"})";
  for (const auto& [hook, good, wrong] :
       {std::tuple("paceline-spec", "sweeps/quick.json", "unknown key \"partiton\""),
        {"paceline-site", "slurm/sites/generic.json", "did you mean \"partition\"?"}}) {
    const std::string entry =
        shell(
            "python3 -c 'import yaml; print(*(each[\"entry\"] for each in yaml.safe_load(open(\"" +
            sources + "/.pre-commit-hooks.yaml\")) if each[\"id\"] == \"" + hook + "\"))'")
            .out;
    const std::string call = entry.substr(0, entry.find('\n')) + " '" + sources + "/" + good + "' ";
    expect_success(with_program(call));
    const Ran ran = with_program(call + "bad.json");
    EXPECT_NE(ran.code, 0);
    expect_parts(ran.err, {"bad.json:1", wrong});
  }
}

class Action : public Recipes {
 protected:
  void SetUp() override {
    if (!is_here("python3 -c 'import yaml'")) GTEST_SKIP() << "there is no python3-yaml";
    std::ofstream(folder() / "quick") << "sleep 0.05\n";
    std::ofstream(folder() / "slow") << "sleep 0.3\n";
    // Instead of paceline: ends as PLAYED says.
    std::ofstream(folder() / "play") << R"(#!/bin/sh
if [ "$1" = --version ]; then echo "paceline of a test"; exit 0; fi
printf '<%s>' "$@"
echo "played $PLAYED" > gate/gate.md
exit "$PLAYED"
)";
    shell("chmod +x play");
  }
  Ran play(const std::string& inputs, const std::string& before = "") const {
    return shell(before +
                 " python3 '" PACELINE_SOURCE_DIR
                 "/tests/integration/cli/play_action.py' '" PACELINE_SOURCE_DIR "/action.yml' " +
                 inputs);
  }
};

TEST_F(Action, HandsItsInputsToTheGate) {
  const Ran ran = play(
      "program=$PWD/play old='python3 a.py' new=./b spec=s.json set=\"$(printf "
      "'epochs=1\\ngpus=1,2')\" "
      "control=false",
      "PLAYED=0");
  EXPECT_EQ(ran.code, 0) << ran.err;
  expect_parts(ran.out,
               {"paceline of a test", "<gate><--ab><python3 a.py><./b><s.json>",
                "<--set><epochs=1><--set><gpus=1,2>", "output verdict=pass", "summary: played 0"});
  EXPECT_FALSE(contains(ran.out, "--control")) << ran.out;
}

TEST_F(Action, FailsTheJobOnARegressionOnly) {
  struct Case {
    const char *played, *inputs, *verdict;
    int code;
  };
  for (const Case& each : {Case{"1", "", "regression", 1}, Case{"2", "", "undecided", 0},
                           Case{"2", "undecided=fail", "undecided", 2}, Case{"65", "", "", 65},
                           Case{"0", "undecided=maybe", "", 64}, Case{"0", "control=on", "", 64}}) {
    const Ran ran = play("program=$PWD/play old=a new=b " + std::string(each.inputs),
                         std::string("PLAYED=") + each.played);
    EXPECT_EQ(ran.code, each.code) << each.played << each.inputs << ran.err;
    expect_parts(ran.out, {std::string("output verdict=") + each.verdict});
  }
}

TEST_F(Action, FindsASlowerProgram) {
  const Ran ran = play("program='" PACELINE_BINARY "' old='sh quick' new='sh slow' control=false");
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  expect_parts(ran.out, {"::error title=paceline gate regression::", "output verdict=regression",
                         "summary: "});
  EXPECT_TRUE(contains(read_text(folder() / "gate/gate.xml"), "<failure message="));
}

// What ReFrame would start on partitions whose launchers differ, with one GPU a node.
TEST_F(Recipes, ReFramesCheckAsksEachLauncherForWhatItKnows) {
  if (!is_here("command -v reframe")) GTEST_SKIP() << "no reframe on the PATH";
  std::ofstream(folder() / "conf.py") << R"(
def part(launcher, scheduler):
    return {"name": launcher, "scheduler": scheduler, "launcher": launcher, "environs": ["none"],
            "devices": [{"type": "gpu", "num_devices": 1}]}
site_configuration = {
    "systems": [{"name": "tried", "hostnames": [".*"], "partitions": [part("mpirun", "local"), part("srun", "slurm")]}],
    "environments": [{"name": "none"}],
}
)";
  expect_success(with_program("reframe -C conf.py -c '" +
                              (kRecipes / "reframe_paceline.py").string() +
                              "' --dry-run -S device=cuda --prefix=rfm"));
  const std::string jobs = shell("cat $(find rfm -name rfm_job.sh)").out;
  expect_parts(jobs, {"mpirun -np 2 paceline train", "srun --cpus-per-task=1 --mpi=pmix paceline",
                      "#SBATCH --ntasks-per-node=1"});
  EXPECT_FALSE(contains(jobs, "ntasks-per-node=2")) << jobs;
}

TEST_F(Recipes, JubeMakesItsTable) {
  if (!is_here("command -v jube")) GTEST_SKIP() << "no jube on the PATH";
  fs::copy(kRecipes / "jube_paceline.yml", folder());  // its runs stand beside it
  const Ran ran = expect_success(with_program(
      "sh -c 'jube run jube_paceline.yml > log 2>&1 && jube result jube_paceline_runs'"));
  EXPECT_TRUE(
      std::regex_search(ran.out, std::regex(R"(mnist-mlp \| +mpi \| +2 \| +[0-9.]+ \| +[0-9.]+)")))
      << ran.out;
}

// What Ramble would do: fill in the template, run it, and search the log for the figures of merit.
TEST_F(Recipes, RamblesApplicationFindsItsFigures) {
  if (!is_here("command -v python3")) GTEST_SKIP() << "no python3 on the PATH";
  std::ofstream(folder() / "play.py") << R"(
import os, re, subprocess, sys, types
kit, made = types.ModuleType("ramble.appkit"), {"variables": {}, "foms": []}
kit.ExecutableApplication = object
kit.tags = kit.workload = lambda *a, **k: None
kit.executable = lambda name, command, use_mpi: made.update(command=command)
kit.workload_variable = lambda name, default, **k: made["variables"].update({name: default})
kit.figure_of_merit = lambda name, **k: made["foms"].append(k)
kit.success_criteria = lambda name, mode, match, file: made.update(success=match)
sys.modules["ramble"], sys.modules["ramble.appkit"] = types.ModuleType("ramble"), kit
exec(open(sys.argv[1]).read())
values = dict(made["variables"], n_ranks="2", experiment_run_dir=os.getcwd())
subprocess.run(made["command"].format(**values).split(), check=True)
lines = open("record.json").read().splitlines()
assert any(re.match(made["success"], line) for line in lines)
for fom in made["foms"]:
    found = [m.group(fom["group_name"]) for m in (re.match(fom["fom_regex"], line) for line in lines) if m]
    assert len(found) == 1 and float(found[0]) > 0, (fom, found)
print("figures:", len(made["foms"]))
)";
  const Ran ran = expect_success(
      with_program("python3 play.py '" + (kRecipes / "ramble_application.py").string() + "'"));
  expect_parts(ran.out, {"figures: 2"});
}

}  // namespace
}  // namespace paceline

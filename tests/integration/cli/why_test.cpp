// `paceline why` on a stand-in for PyTorch, whose work is sleep.
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class WhyOfProgram : public Cli {
 protected:
  void SetUp() override {
    if (shell("command -v python3").code != 0) GTEST_SKIP() << "no python3 on the PATH";
    fs::copy(kPrograms / "launch.py", folder());
    fs::copy(kPrograms / "train.py", folder());
    std::ofstream(folder() / "notes.txt") << "mine\n";
  }

  // `why` with the stand-in's two ranks.
  Ran why(const std::string& options, const std::string& program) const {
    return shell("PYTHONPATH=" + kPrograms.string() + " paceline why " + options +
                 " -- python3 launch.py train.py " + program);
  }
  Json verdict(const std::string& options, const std::string& program) const {
    const Ran ran = why("--json --minutes 2 " + options, "--steps 134 " + program);
    EXPECT_TRUE(ran.code == 0 || ran.code == 2) << ran.err << ran.out;  // the machine may be busy
    return parse_json(ran.out);
  }
  void expect_no_measure(const std::string& program, int code,
                         const std::vector<std::string>& parts) const {
    const Ran ran = why("", program);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_EQ(ran.out, "");
    expect_parts(ran.err, parts);
  }

  // What the hook writes of the ranks of a program that it is loaded into, without `why`.
  Json hooked(const std::string& settings, const std::string& program,
              const std::string& before = "") const {
    fs::remove_all(folder() / "out");
    fs::create_directory(folder() / "out");
    Json all = {{"out", (folder() / "out").string()},
                {"warm", 34},
                {"steps", 60},
                {"seconds", 0},
                {"take", Json::array()},
                {"replicas", "2"},
                {"threads", 0},
                {"cpus", {0}},
                {"bucket_mb", 0},
                {"workers", 0},
                {"batch", 0}};
    all.update(parse_json(settings));
    expect_success(shell("export PYTHONPATH=" + kHook.string() + ":" + before + kPrograms.string() +
                         "\nexport PACELINE_WHY='" + json_text(all) +
                         "'\ntimeout 60 python3 launch.py train.py " + program));
    const fs::path file = folder() / "out" / "run.json";
    return fs::exists(file) ? parse_json(file_text(file)) : Json();
  }

  // Names and contents of all files of the folder, but the study.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
      const std::string name = entry.path().lexically_relative(folder());
      if (!name.starts_with("study")) {
        all[name] = entry.is_regular_file() ? file_text(entry.path()) : "";
      }
    }
    return all;
  }

  const fs::path kPrograms = fs::path(PACELINE_SOURCE_DIR) / "tests/integration/cli/stand_in_torch";
  const fs::path kHook = fs::path(PACELINE_SOURCE_DIR) / "sweeps/why";
};

double points(const Json& verdict, const std::string& key, const std::string& rows = "causes") {
  for (const Json& cause : verdict.at(rows)) {
    if (cause.at("key") == key) return cause.at("points");
  }
  ADD_FAILURE() << "no " << key << " in " << verdict.dump(2);
  return 0;
}

// A step is 2 ms of work, 4 ms of waiting and a sum of 0.5 ms.
TEST_F(WhyOfProgram, NamesTheLoaderTriesWorkersAndLeavesTheFolderAsItIs) {
  const auto before = files();
  const Json verdict = this->verdict("--out study", "--wait 0.004 --write own.txt");
  EXPECT_EQ(files(), before);
  EXPECT_EQ(verdict.at("first_cause"), "data") << verdict.dump(2);
  EXPECT_GT(points(verdict, "data"), 25);
  EXPECT_GT(verdict.at("efficiency").get<double>(), 0.7);
  EXPECT_GT(points(verdict, "workers", "tries"), 10);  // two workers halve the wait
  // The study is one as any other: one replica alone is the base.
  const Ran report = succeed("report study --json");
  EXPECT_NE(report.out.find("speed_up"), std::string::npos);
  expect_parts(succeed("explain study").out, {"efficiency"});
  succeed("archive study --out study.tar.gz");
}

TEST_F(WhyOfProgram, NamesTheLateRank) {
  const Json verdict = this->verdict("", "--late 0.003 --transfer 0.0001");
  EXPECT_EQ(verdict.at("first_cause"), "late") << verdict.dump(2);
  EXPECT_GT(points(verdict, "late"), 25);
  EXPECT_LT(verdict.at("efficiency_high").get<double>(), 0.7);
}

TEST_F(WhyOfProgram, NamesTinyBucketsSavesAndTheSmallerBatch) {
  const Json buckets = verdict("", "--bucket 2.5");  // ten sums of 0.5 ms
  EXPECT_EQ(buckets.at("first_cause"), "sums") << buckets.dump(2);
  EXPECT_GT(points(buckets, "buckets", "tries"), 30);
  const Json saves = verdict("", "--save weights.txt --save_seconds 0.003");
  EXPECT_EQ(saves.at("first_cause"), "saves") << saves.dump(2);
  const Json batch = verdict("", "--global-batch 32");
  EXPECT_EQ(batch.at("first_cause"), "small_batch") << batch.dump(2);
  EXPECT_NE(json_text(batch).find("falls from 32 alone to 16 among 2"), std::string::npos);
}

TEST_F(WhyOfProgram, RefusesWritesElsewhereAndNamesThem) {
  const std::string outside = (folder() / "notes.txt").string();
  const auto before = files();
  expect_no_measure("--write " + outside, 65,
                    {"writes outside of its folder", "notes.txt", "--writes-ok"});
  EXPECT_EQ(files(), before);
  // By another program: the kernel refuses it, where it can.
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1) return;
  expect_no_measure("--steps 20 --shell 'echo x >> " + outside + "'", 65, {"ended after 20 steps"});
  EXPECT_EQ(files(), before);
  EXPECT_EQ(why("--writes-ok", "--steps 20 --write " + outside).code, 65);
  EXPECT_EQ(file_text(folder() / "notes.txt"), "mine\nwritten\nwritten\n");
}

TEST_F(WhyOfProgram, SaysWhatItCannotMeasure) {
  expect_no_measure("--irregular", 65, {"no constant ratio"});
  expect_no_measure("--no-step --steps 60", 65, {"the hook saw no step"});
  expect_no_measure("--steps 20", 65, {"ended after 20 steps", "54 are needed"});
  expect_no_measure("--unknown", 1, {"fails as it is", "exit code 2"});
  expect_refused("why -- no-such-program", 65, {"there is no program no-such-program"});
  expect_refused("why", 64, {"command"});
  std::ofstream(folder() / "big");
  fs::resize_file(folder() / "big", 5'000'000'000);  // sparse
  expect_refused("why -- true", 65, {"more than 4.0 GB", "largest entry is big", "--link big"});
  expect_refused("why --out . -- python3 train.py", 64, {"not an empty folder"});
  expect_refused("why --link elsewhere -- python3 train.py", 64, {"--link elsewhere"});
}

TEST_F(WhyOfProgram, HookCountsStepsOfAccumulationAndIgnoresChildren) {
  const Json run = hooked("{}", "--accumulate 2 --child --steps 70");
  EXPECT_EQ(run.at("ratio"), 2);
  EXPECT_EQ(run.at("steps"), 26);
  EXPECT_EQ(run.at("samples"), 26 * 2 * 2 * 16);
}

TEST_F(WhyOfProgram, HookTakesAwayWhatItIsAskedTo) {
  const Json data = hooked(R"({"take": ["data"]})", "--wait 0.002");
  EXPECT_EQ(data.at("batches"), 32);
  EXPECT_EQ(data.at("repeated"), 28);
  EXPECT_LT(data.at("wait").get<double>(), 0.02);
  EXPECT_TRUE(hooked(R"({"take": ["data"]})", "--in-place").at("changes_batches"));
  const Json sums = hooked(R"({"take": ["sums"]})", "--own-hook --transfer 0.01 --call");
  EXPECT_EQ(sums.at("own_calls"), 0);
  EXPECT_LT(sums.at("seconds").get<double>(), 26 * 0.008);
  const Json calls = hooked("{}", "--transfer 0.01 --call");
  EXPECT_EQ(calls.at("own_calls"), 26);
  EXPECT_EQ(hooked(R"({"replicas": "1"})", "").at("ranks"), 1);
}

// EasyBuild has one of its own.
TEST_F(WhyOfProgram, HookPassesOnToAnotherSitecustomize) {
  fs::create_directory(folder() / "site");
  std::ofstream(folder() / "site" / "sitecustomize.py")
      << "import os\nos.environ['SITE_SEEN'] = 'yes'\n";
  std::ofstream(folder() / "seen.py")
      << "import os, sys\nprint(os.environ.get('SITE_SEEN'), 'torch' in sys.modules)\n";
  EXPECT_EQ(shell("PYTHONPATH=" + kHook.string() + ":site python3 seen.py").out, "yes False\n");
}

}  // namespace
}  // namespace paceline

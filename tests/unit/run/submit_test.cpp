#include "run/submit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

// A study of two points on a cluster whose Slurm is a few shell scripts, without data.
class StudySubmitterTest : public ::testing::Test {
 protected:
  StudySubmitterTest() {
    write("s.json", R"({"name": "s", "workload": "mnist-mlp", "repeats": 1,
        "fixed": {"device": "cpu", "cpus_per_task": 2, "backend": "mpi", "input": "synthetic",
                  "steps": 2}, "axes": {"gpus": [1, 2]}})");
    write_site("");
    for (const char* program : {"squeue", "sacct", "scontrol", "sinfo", "sacctmgr"}) {
      fake(scratch_.path(), program, ":");
    }
    fake(scratch_.path(), "sbatch",
         "cd '" + scratch_.path().string() + "'; echo x >> calls; grep -c . calls");
    path_ = std::getenv("PATH");
    setenv("PATH", (scratch_.path().string() + ":" + path_).c_str(), 1);
    options_.spec = file("s.json");
    options_.site = file("site.json");
    options_.results = file("results");
  }
  ~StudySubmitterTest() override { setenv("PATH", path_.c_str(), 1); }

  std::string file(const std::string& name) const { return (scratch_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }
  void write_site(const std::string& keys) const {
    write("site.json",
          R"({"name": "site", "cores_per_node": 8, "program": "/opt/paceline")" + keys + "}");
  }
  std::string calls() const { return file_text(file("calls")); }

  // What it prints.
  std::string submit(bool confirms = true, bool expected = true) {
    std::string text;
    StudySubmitter submitter(options_);
    EXPECT_EQ(submitter.submit([&](const std::string& part) { text += part; },
                               [&] {
                                 ++asked_;
                                 return confirms;
                               }),
              expected);
    return text;
  }

  Scratch scratch_;
  SubmitOptions options_;
  std::string path_;
  int asked_ = 0;
};

TEST_F(StudySubmitterTest, ADryRunWritesScriptsAndSaysWhatWouldBeRefused) {
  options_.dry_run = true;
  options_.scripts = file("scripts");
  write_site(R"(, "account": "XXX")");
  expect_parts(StudySubmitter(options_).dry_run(),
               {"s: 2 arrays, 2 elements", "account is XXX; write your own before you submit",
                "each run: " + file("scripts") + "/*.sbatch, *.points\n"});
  expect_parts(file_text(file("scripts/1n2t2c.points")), {"--gpus=2"});
  expect_parts(file_text(file("scripts/1n2t2c.sbatch")), {file("scripts")});
  EXPECT_FALSE(std::filesystem::exists(options_.results));
  EXPECT_EQ(calls(), "");
  options_.dry_run = false;
  expect_error(ErrorKind::usage, {"account is XXX", "your centre's value"}, [&] { submit(); });
}

TEST_F(StudySubmitterTest, ThePrivateFolderOfADryRunIsEmptiedAndNobodyElses) {
  const std::string temporary = std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "";
  setenv("TMPDIR", scratch_.path().c_str(), 1);
  options_.dry_run = true;
  const std::string name = "paceline-s-" + std::to_string(geteuid());
  expect_parts(StudySubmitter(options_).dry_run(), {file(name) + "/*.sbatch"});
  write(name + "/old.sbatch", "");
  StudySubmitter(options_).dry_run();
  EXPECT_FALSE(std::filesystem::exists(file(name + "/old.sbatch")));
  EXPECT_TRUE(std::filesystem::exists(file(name + "/1n1t2c.sbatch")));
  std::filesystem::rename(file(name), file("elsewhere"));
  std::filesystem::create_directory_symlink(file("elsewhere"), file(name));
  expect_error(ErrorKind::input, {name, "is not this user's", "--scripts FOLDER"},
               [&] { StudySubmitter(options_).dry_run(); });
  temporary.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", temporary.c_str(), 1);
}

TEST_F(StudySubmitterTest, SendsOnceWhatWasConfirmed) {
  expect_no_parts(submit(false, false), {"watch it"});
  EXPECT_EQ(calls(), "");
  options_.no_collect = true;
  expect_parts(submit(), {"job 1: 1n1t2c", "job 2: 1n2t2c",
                          "watch it: paceline status " + file("results/s") + " --watch\n"});
  EXPECT_EQ(calls(), "x\nx\n");
  EXPECT_EQ(asked_, 2);
}

TEST_F(StudySubmitterTest, TheBudgetIsThatOfAllThatIsSent) {
  options_.max_gpu_hours = 0;
  write("s.json", R"({"name": "s", "workload": "mnist-mlp", "fixed": {"device": "cuda",
      "backend": "nccl", "input": "synthetic", "steps": 2, "cpus_per_task": 1}, "axes": {"gpus": [1]}})");
  write_site(R"(, "gpus": {"form": "gres"}, "gpus_per_node": 2)");
  expect_error(ErrorKind::usage, {"1.0 GPU-hours are more than --max-gpu-hours 0", "--set"},
               [&] { submit(); });
  EXPECT_EQ(asked_, 0);
  options_.dry_run = true;
  options_.scripts = file("scripts");
  expect_parts(StudySubmitter(options_).dry_run(),
               {"warning: more than --max-gpu-hours 0: submit will refuse"});
}

// Only the profile says how much memory a program of the user's own takes.
TEST_F(StudySubmitterTest, AnOwnProgramTakesTheMemoryOfTheProfile) {
  write("s.json", R"({"name": "s", "workload": "command", "command": ["true"], "repeats": 1,
      "results": {"samples_per_second": {"line": "rate {number}"}}, "axes": {"gpus": [1]}})");
  write_site(R"(, "memory": {"form": "mem", "gb_per_replica": 3})");
  options_.dry_run = true;
  options_.scripts = file("scripts");
  expect_parts(StudySubmitter(options_).dry_run(), {"1n1t"});
  expect_parts(file_text(file("scripts/1n1t8c.sbatch")), {"--mem=3549M"});
}

TEST_F(StudySubmitterTest, ASmokeTestMeasuresNothing) {
  options_.smoke = true;
  options_.until_precision = "2%";
  expect_error(ErrorKind::usage, {"--until-precision", "measures nothing"}, [&] { submit(); });
}

TEST_F(StudySubmitterTest, NotesSayWhatIsNotAsTheSpecWouldHaveIt) {
  options_.dry_run = true;
  options_.scripts = file("scripts");
  write_site(R"(, "gpus": {"form": "gres"}, "gpus_per_node": 2)");
  setenv("SBATCH_PARTITION", "mine", 1);
  write_site(R"(, "gpus": {"form": "gres"}, "gpus_per_node": 2, "partition": "gpu")");
  const std::string text = StudySubmitter(options_).dry_run();
  unsetenv("SBATCH_PARTITION");
  expect_parts(text, {"note: the points are of device cpu, so no GPUs are requested",
                      "sbatch would prefer it to the scripts' lines: SBATCH_PARTITION"});
}

}  // namespace
}  // namespace paceline

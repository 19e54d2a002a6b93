#include "run/element.h"

#include <gtest/gtest.h>

#include <fstream>

#include "results/names.h"
#include "results/store.h"
#include "sweeps/program.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

// A points file of one run.
class Element : public ::testing::Test {
 protected:
  Element() { write_points(R"("--backend=mirrored/mpi",)", "S"); }

  std::filesystem::path file(const std::string& name) const { return scratch_.path() / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }
  void write_points(const std::string& words, const std::string& session) {
    RunContext context;
    context.study = "s";
    context.point = "gpus=1";
    context.point_folder = "p";
    context.session = session;
    context.repeat = 2;
    write("points", R"(["train","mnist-mlp","--gpus=1","--cpus-per-task=1",)" + words +
                        line_of_words({"--store=" + file("study").string(),
                                       "--context=" + context.json(), "--quiet"})
                            .substr(1) +
                        "\n");
  }
  ArrayElement element() const { return {file("points").string()}; }
  ElementRun run() const { return read_run(element(), {}); }

  std::string reason_of_end(int code, const std::string& log) const {
    write("log", log);
    EXPECT_EQ(write_end(run(), code, file("log")), code == 0 ? 70 : code);
    const StoreContent content = load_store(file("study"));
    return content.records.empty() ? "" : content.records.back()->reason;
  }

  Scratch scratch_;
};

TEST_F(Element, ItsRunIsThatOfTheLine) {
  const ElementRun run = this->run();
  EXPECT_EQ(run.what.workload, "mnist-mlp");
  EXPECT_EQ(run.what.point_folder, "p");
  EXPECT_EQ(run.what.repeat, 2);
  EXPECT_EQ(run.what.parameters.integer("cpus_per_task"), 1);
  EXPECT_EQ(run.what.parameters.text("backend"), "mirrored/mpi");
  EXPECT_EQ(run.store, file("study"));
  ArrayElement fallen = element();
  fallen.backend = "ring";
  EXPECT_EQ(read_run(fallen, {}).what.parameters.text("backend"), "ring");
}

TEST_F(Element, AScriptSentByHandGivesItsJobAsSession) {
  EXPECT_EQ(run().what.session, "S");
  write_points("", kDryRunSession);
  EXPECT_EQ(read_run(element(), {{"SLURM_ARRAY_JOB_ID", "17"}}).what.session, "by-hand-17");
}

TEST_F(Element, LinesThatAreNoRunAreRefused) {
  for (const auto& [line, part] :
       {std::pair(R"(["nonsense"])", "does not describe a run"),
        std::pair(R"(["train","mnist-mlp","gpus=1"])", "unknown word \"gpus=1\""),
        std::pair(R"(["train","mnist-mlp","--store=s"])", "--store and --context are missing")}) {
    write("points", std::string(line) + "\n");
    expect_error(ErrorKind::usage, {part, "submit the study again"}, [&] { run(); });
  }
}

TEST_F(Element, ARunWithoutARecordGetsOneThatSaysWhy) {
  EXPECT_EQ(reason_of_end(71, "x\npaceline: rank 1 was killed\nsrun: error: n1: task 1\n"),
            "rank 1 was killed (exit code 71)");
  EXPECT_EQ(reason_of_end(1, "x\nsrun: error: no such node\ny\n"),
            "srun: error: no such node (exit code 1)");
  EXPECT_EQ(reason_of_end(137, "x\n"), "killed by SIGKILL");
  EXPECT_EQ(reason_of_end(255, ""), "ended with exit code 255");
  EXPECT_EQ(reason_of_end(0, ""), "exit code 0, but it left no record");
  EXPECT_EQ(load_store(file("study")).records.back()->status, "failed");
  reason_of_end(75, "paceline: saved");
  EXPECT_EQ(load_store(file("study")).records.back()->status, "preempted");
  EXPECT_FALSE(run().is_done()) << "none of these is completed";
}

TEST_F(Element, FallsBackOnlyFromCommunication) {
  const int stall = exit_code(ErrorKind::stall);
  EXPECT_EQ(find_fallback(run(), 1, file("status"), "ring"), "");
  EXPECT_EQ(find_fallback(run(), stall, file("status"), "mpi"), "") << "it is that one";
  expect_error(ErrorKind::input, {"status"},
               [&] { find_fallback(run(), stall, file("status"), "ring"); });
}

TEST_F(Element, AJobIsComparedWithItsRun) {
  expect_error(ErrorKind::usage, {"job 7: the job has 2 nodes, its run needs 1"}, [&] {
    check_job(run(), {}, {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "2"}});
  });
  const Record refused = load_store(file("study")).records.at(0);
  EXPECT_EQ(refused->status, "failed");
  EXPECT_NE(refused->reason.find("job 7: the job has 2 nodes"), std::string::npos)
      << refused->reason;
  expect_error(ErrorKind::usage, {"--built device=nope", "nope"},
               [&] { check_job(run(), {"device=nope"}, {}); });
  for (const Name& backend : known_names().backends) {
    if (backend.built) continue;
    expect_error(ErrorKind::usage, {"backend " + backend.name + " is not built into the program"},
                 [&] { check_job(run(), {"backend=" + backend.name}, {}); });
  }
}

}  // namespace
}  // namespace paceline

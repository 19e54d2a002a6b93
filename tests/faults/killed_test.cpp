// A rank that is killed, stopped or slow, of every kind of backend and start.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "engine/launch/program.h"
#include "results/names.h"
#include "tests/faults/victim.h"
#include "tests/support/hydra.h"

namespace paceline::faults {
namespace {

struct Way {
  const char* backend;
  Starter starter;
};

std::string to_string(const testing::TestParamInfo<Way>& info) {
  std::string name = info.param.backend;
  for (char& c : name) {
    if (c == '/' || c == '-') c = '_';
  }
  const char* const starters[] = {"", "_by_mpirun", "_by_srun"};
  return name + starters[static_cast<int>(info.param.starter)];
}

bool slurm_runs() {
  return contains(capture_output({"sinfo", "--noheader", "--format=%a"}), "up");
}

class Rank : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const Name backend = find_name("backend", GetParam().backend);
    if (!backend.built) GTEST_SKIP() << backend.reason;
    if (GetParam().starter == Starter::mpirun && !find_name("backend", "mpi").built) {
      GTEST_SKIP() << "there is no mpirun";
    }
    if (GetParam().starter == Starter::srun && !slurm_runs()) GTEST_SKIP() << "no Slurm runs here";
  }

  static void expect_named(const End& end, const std::string& what) {
    EXPECT_TRUE(contains(end.err, "rank 1") || (is_hydra() && contains(end.err, "rank")))
        << end.err;
    EXPECT_TRUE(contains(end.err, what)) << end.err;
    if (GetParam().starter != Starter::us) return;
    EXPECT_TRUE(end.last_line.starts_with("paceline: ")) << end.err;
    EXPECT_TRUE(contains(end.last_line, what)) << end.err;
  }

  static void expect_order(Victim& run) {
    EXPECT_EQ(run.left(), std::vector<std::string>{});
    EXPECT_EQ(run.disorder(), "");
  }
};

using Killed = Rank;

TEST_P(Killed, IsNamedAndNothingIsLeft) {
  Victim run(training(GetParam().backend, GetParam().starter, {"--record", "run.json"}));
  ASSERT_TRUE(run.trains()) << run.errors();
  const auto target = run.rank(1);
  ASSERT_TRUE(target);
  run.send(*target, SIGKILL);
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  if (GetParam().starter == Starter::us) {
    EXPECT_EQ(end.code, 71);
  } else {
    EXPECT_NE(end.code, 0);
  }
  expect_named(end, GetParam().starter == Starter::srun ? "rank 1" : "signal 9");
  expect_order(run);
}

INSTANTIATE_TEST_SUITE_P(Of, Killed,
                         testing::Values(Way{"mpi", Starter::us}, Way{"gloo", Starter::us},
                                         Way{"ring", Starter::us}, Way{"mpi-ring", Starter::us},
                                         Way{"mirrored/mpi", Starter::mpirun},
                                         Way{"ring", Starter::srun}),
                         to_string);
INSTANTIATE_TEST_SUITE_P(DISABLED_AlsoOf, Killed,
                         testing::Values(Way{"mpi", Starter::mpirun}, Way{"gloo", Starter::mpirun},
                                         Way{"mpi+bf16", Starter::us}, Way{"ring", Starter::mpirun},
                                         Way{"mirrored/ring", Starter::mpirun}),
                         [](const auto& info) { return std::to_string(info.index); });

using Stopped = Rank;

TEST_P(Stopped, IsNamedWithinTheDeadline) {
  Victim run(training(GetParam().backend, GetParam().starter, deadline(3)));
  ASSERT_TRUE(run.trains()) << run.errors();
  const auto target = run.rank(1);
  ASSERT_TRUE(target);
  run.send(*target, SIGSTOP);
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  if (GetParam().starter == Starter::us) {
    EXPECT_TRUE(end.code == 71 || end.code == 72) << end.code;
  } else {
    EXPECT_NE(end.code, 0);
  }
  expect_named(end, "rank");
  expect_order(run);
}

INSTANTIATE_TEST_SUITE_P(Of, Stopped,
                         testing::Values(Way{"mpi", Starter::us}, Way{"ring", Starter::us}),
                         to_string);
INSTANTIATE_TEST_SUITE_P(DISABLED_AlsoOf, Stopped,
                         testing::Values(Way{"gloo", Starter::us}, Way{"mpi", Starter::mpirun},
                                         Way{"mpi-ring", Starter::mpirun},
                                         Way{"mirrored/mpi", Starter::mpirun}),
                         [](const auto& info) { return std::to_string(info.index); });

using Slow = Rank;

// Stopped and let go by turns, it is late at every step: no failure.
TEST_P(Slow, IsWaitedFor) {
  std::vector<std::string> command =
      training(GetParam().backend, GetParam().starter, {"--record", "run.json", "--steps", "400"});
  Victim run(command);
  ASSERT_TRUE(run.trains()) << run.errors();
  const auto target = run.rank(1);
  ASSERT_TRUE(target);
  for (int turn = 0; turn < 10; ++turn) {
    run.send(*target, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    run.send(*target, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(std::filesystem::exists(run.folder() / "run.json"));
  expect_order(run);
}

INSTANTIATE_TEST_SUITE_P(Of, Slow, testing::Values(Way{"ring", Starter::us}), to_string);
INSTANTIATE_TEST_SUITE_P(DISABLED_AlsoOf, Slow, testing::Values(Way{"mpi", Starter::us}),
                         [](const auto& info) { return std::to_string(info.index); });

// One process with all replicas has nobody to tell of its end: what it leaves behind counts.
TEST(Mirrored, KilledLeavesNothing) {
  Victim run(training("mirrored", Starter::us, {"--record", "run.json"}));
  ASSERT_TRUE(run.trains()) << run.errors();
  run.send(run.started(), SIGKILL);
  EXPECT_EQ(run.wait(60).code, 128 + SIGKILL);
  EXPECT_EQ(run.left(), std::vector<std::string>{});
  EXPECT_EQ(run.disorder(), "");
}

}  // namespace
}  // namespace paceline::faults

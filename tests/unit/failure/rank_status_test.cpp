#include "engine/failure/rank_status.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "tests/support/scratch.h"
#include "tests/unit/launch/expect_error.h"

namespace paceline {
namespace {

RankStatus only_status(const RunFolder& folder) {
  const auto statuses = read_statuses(folder.path());
  EXPECT_EQ(statuses.size(), 1U);
  return statuses.empty() ? RankStatus{} : statuses[0];
}

ProcessRank place_of_rank(int rank) {
  ProcessRank process;
  process.rank = rank;
  process.size = rank + 1;
  return process;
}

Environment started_with(const RunFolder& folder) {
  return {{kStatusFolderVariable, folder.path().string()}, {kStarterVariable, "now"}};
}

TEST(RunRank, OutOfMemoryIsCalledSo) {
  const RunFolder folder;
  EXPECT_EQ(
      run_rank(started_with(folder), place_of_rank(0), []() -> int { throw std::bad_alloc(); }),
      65);
  EXPECT_EQ(only_status(folder).message,
            "out of memory; use smaller data, a smaller batch or more memory");
}

TEST(RunRank, WritesDownHowItEnds) {
  const RunFolder folder;
  const Environment environment = started_with(folder);
  RankState during = RankState::failed;
  EXPECT_EQ(run_rank(environment, place_of_rank(3),
                     [&] {
                       during = only_status(folder).state;
                       return 1;
                     }),
            1);
  EXPECT_EQ(during, RankState::running);
  RankStatus status = only_status(folder);
  EXPECT_EQ(status.rank, 3);
  EXPECT_EQ(status.state, RankState::done);
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_EQ(run_rank(environment, place_of_rank(3),
                     []() -> int { throw Error(ErrorKind::input, "bad \xff file"); }),
            65);
  status = only_status(folder);
  EXPECT_EQ(status.state, RankState::failed);
  EXPECT_EQ(status.exit_code, 65);
  EXPECT_EQ(status.message.substr(0, 4), "bad ");
  EXPECT_EQ(
      run_rank(environment, place_of_rank(3), []() -> int { throw std::runtime_error("oh"); }), 70);
  expect_parts(only_status(folder).message, {"oh"});
}

TEST(RunRank, AloneErrorsPass) {
  EXPECT_ERROR(run_rank({}, {}, []() -> int { throw Error(ErrorKind::input, "bad"); }), input,
               "bad");
  EXPECT_EQ(run_rank({}, {}, [] { return 5; }), 5);
}

TEST(Statuses, UnreadableOnesAreLeftOut) {
  const RunFolder folder;
  write_status(folder.path(), {1, "n", 5, RankState::done, 0, "", 1});
  write_status(folder.path(), {0, "n", 4, RankState::done, 0, "", 1});
  std::ofstream(folder.path() / "2.json") << "{\"rank\": 2";
  std::ofstream(folder.path() / "3.json") << "{\"rank\": 3, \"host\": \"n\"}";
  const auto statuses = read_statuses(folder.path());
  ASSERT_EQ(statuses.size(), 2U);
  EXPECT_EQ(statuses[0].rank, 0);
  EXPECT_EQ(statuses[1].rank, 1);
}

TEST(RunFolder, IsPrivateAndGoesAway) {
  std::filesystem::path path;
  {
    const RunFolder folder;
    path = folder.path();
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RunFolder, ThatOfAKilledProcessIsRemovedByTheNextOne) {
  const Scratch scratch;
  const auto folders = [&] {
    const std::filesystem::directory_iterator begin(scratch.path()), end;
    return std::distance(begin, end);
  };
  ASSERT_EQ(setenv("TMPDIR", scratch.path().c_str(), 1), 0);
  const pid_t child = fork();
  if (child == 0) {
    const RunFolder folder;
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(folders(), 1);
  {
    const RunFolder one, two;
    EXPECT_EQ(folders(), 2);
    ScratchFolder::remove_left(ScratchFolder::kRunPrefix);
    EXPECT_EQ(folders(), 2);
  }
  unsetenv("TMPDIR");
  EXPECT_EQ(folders(), 0);
}

// What only a post-mortem would read ends no run.
TEST(RunFolder, WhereNoneCanBeMadeAPrivateOneDoes) {
  const RunFolder folder(Environment{{"PACELINE_STATUS_DIR", "/dev/null"}});
  EXPECT_NE(folder.path(), "/dev/null");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path()));
}

}  // namespace
}  // namespace paceline

// What is said of a run some of whose ranks may still run.
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/failure/flight_ring.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/program.h"
#include "run/diagnosis.h"
#include "tests/support/dead_process.h"
#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

class PostMortem : public testing::Test {
 protected:
  // Of two ranks, of which 1 wrote just now.
  void write(int rank, const std::string& host, int process, RankState state = RankState::running) {
    const bool failed = state == RankState::failed;
    write_status(path(), {rank, host, process, state, failed ? 65 : 0, failed ? "no such file" : "",
                          4e9, "a", 2});
  }
  void expect(int code, const std::string& line) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(print_post_mortem(path(), false), code);
    expect_parts(testing::internal::GetCapturedStdout(), {line});
  }
  const std::filesystem::path& path() const { return scratch_.path(); }

 private:
  Scratch scratch_;
};

TEST_F(PostMortem, ARankThatIsGoneHasEndedTheRun) {
  const FlightRing ring({1, 2, 1, "elsewhere", "a"}, path());
  write(0, host_name(), dead_process());
  write(1, "elsewhere", 1);
  expect(71, "ended without reporting an error");
}

TEST_F(PostMortem, ARankThatFailedHasEndedTheRun) {
  const FlightRing ring({1, 2, 1, "elsewhere", "a"}, path());
  write(0, host_name(), dead_process(), RankState::failed);
  write(1, "elsewhere", 1);
  expect(65, "no such file");
  write(1, host_name(), getpid());
  expect(2, "the run still runs: rank 1 did not end");
}

TEST_F(PostMortem, WhoWasSeenOnAnotherHostMayStillRun) {
  const FlightRing ring({1, 2, 1, "elsewhere", "a"}, path());
  write(1, "elsewhere", 1);
  expect(2, "the run may still run: rank 1 ran less than a minute ago");
  write(0, host_name(), getpid());
  expect(2, "the run still runs: rank 0, 1 did not end");
}

}  // namespace
}  // namespace paceline

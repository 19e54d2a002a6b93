#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/failure/rank_status.h"
#include "engine/launch/process_rank.h"
#include "engine/start/spawn.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

TEST(StopRequests, SignalsAreNotedAndEndNothing) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    StopRequests requests("");
    EXPECT_EQ(requests.pending(), 0);
    kill(getpid(), signal);
    EXPECT_EQ(requests.pending(), signal);
    kill(getpid(), SIGTERM);  // the first is what counts, and none ends the process afterwards
    EXPECT_EQ(requests.pending(), signal);
  }
}

TEST(StopRequests, TheStarterMayLeaveOne) {
  const Scratch folder;
  const Environment environment = {{kStatusFolderVariable, folder.path()},
                                   {kStarterVariable, "a7"}};
  StopRequests requests(request_file(environment));
  write_stop_request(request_file(folder.path(), "a6"), SIGTERM);  // of an attempt before
  EXPECT_EQ(requests.pending(), 0);
  write_stop_request(request_file(folder.path(), "a7"), SIGUSR1);
  EXPECT_EQ(requests.pending(), SIGUSR1);
}

TEST(StopRequests, RanksOfOtherLaunchersHaveNoStarter) {
  EXPECT_EQ(request_file({{kStatusFolderVariable, "/somewhere"}}), "");
}

}  // namespace
}  // namespace paceline

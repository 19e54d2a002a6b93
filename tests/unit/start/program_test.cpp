#include "engine/launch/program.h"

#include <gtest/gtest.h>

#include "engine/core/clock.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"
#include "engine/start/spawn.h"
#include "tests/unit/launch/expect_error.h"

namespace paceline {
namespace {

TEST(Program, FoundInPathOnly) {
  EXPECT_TRUE(find_program("sh", environment_of_process()));
  EXPECT_FALSE(find_program("no-such-program", environment_of_process()));
  EXPECT_FALSE(find_program("sh", {}));
  EXPECT_EQ(this_program().filename(), "test_unit_start");
}

TEST(Program, OutputOfOneThatWillNotEndIsEmpty) {
  EXPECT_EQ(capture_output({"/bin/sh", "-c", "echo a; echo b >&2"}), "a\nb\n");
  EXPECT_EQ(capture_output({"/no/such/program"}), "");
  const double start = now_seconds();
  EXPECT_EQ(capture_output({"/bin/sh", "-c", "sleep 30"}, 0.2), "");
  EXPECT_LT(now_seconds() - start, 10);
}

TEST(Launcher, MakeAndCommand) {
  EXPECT_EQ(identify_launcher("mpirun (Open MPI) 4.1.4\n"), LauncherMake::open_mpi);
  EXPECT_EQ(identify_launcher("mpirun.openmpi (OpenRTE) 4.1.4"), LauncherMake::open_mpi);
  EXPECT_EQ(identify_launcher("HYDRA build details:\n Version: 4.0.2"), LauncherMake::hydra);
  EXPECT_EQ(identify_launcher("Intel(R) MPI Library for Linux* OS"), LauncherMake::hydra);
  const auto command = launch_command({"/bin/mpirun", LauncherMake::open_mpi, ""}, 4, {"/x", "y"});
  EXPECT_EQ(join(command, " "),
            std::string("/bin/mpirun --bind-to none --map-by slot:OVERSUBSCRIBE -x ") +
                kStatusFolderVariable + " -x " + kStarterVariable + " -n 4 /x y");
  EXPECT_ERROR(launch_command({"/bin/mpirun", LauncherMake::unknown, "hm 1.0"}, 4, {"/x"}), usage,
               "\"hm 1.0\" is neither Open MPI nor MPICH");
}

}  // namespace
}  // namespace paceline

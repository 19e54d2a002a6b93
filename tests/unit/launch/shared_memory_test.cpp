#include "engine/launch/shared_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/launch/expect_error.h"

namespace paceline {
namespace {

TEST(SharedMemory, TooLittleRoomIsRefusedWithTheCure) {
  EXPECT_NO_THROW(check_room(100, 100, "/dev/shm"));
  EXPECT_NO_THROW(check_room(100, -1, "/dev/shm"));
  for (const char* part :
       {"/dev/shm: the ranks of this node need a shared window of 128 MB, 64.0 MB are free",
        "--shm-size", "OMPI_MCA_osc_sm_backing_directory"}) {
    EXPECT_ERROR(check_room(128'000'000, 64'000'000, "/dev/shm"), usage, part);
  }
}

TEST(SharedMemory, FolderFollowsOpenMpisVariable) {
  EXPECT_EQ(shared_memory_folder({}), "/dev/shm");
  EXPECT_EQ(shared_memory_folder({{"OMPI_MCA_osc_sm_backing_directory", "/scratch"}}), "/scratch");
}

TEST(SharedMemory, FreeBytesOfAFolder) {
  EXPECT_GT(free_bytes("/tmp"), 0);
  EXPECT_EQ(free_bytes("/no/such/folder"), -1);
}

}  // namespace
}  // namespace paceline

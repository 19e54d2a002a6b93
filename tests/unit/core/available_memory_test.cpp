#include <gtest/gtest.h>

#include "engine/core/file.h"
#include "engine/core/memory.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

class AvailableMemory : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const auto file = scratch_ / name;
    make_folder(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<std::size_t> found() const {
    return available_memory(scratch_ / "proc", scratch_ / "groups");
  }

 private:
  Scratch scratch_;
};

TEST_F(AvailableMemory, OfTheMachine) {
  EXPECT_FALSE(found());
  write("proc/meminfo", "MemTotal:  900 kB\nMemFree: 1 kB\nMemAvailable:    800 kB\n");
  EXPECT_EQ(found(), 800U * 1024);
}

TEST_F(AvailableMemory, ControlGroupsLeaveLess) {
  write("proc/meminfo", "MemAvailable:    800 kB\n");
  write("proc/self/cgroup", "0::/job/step\n");
  write("groups/job/memory.max", "500000\n");
  write("groups/job/memory.current", "100000\n");
  write("groups/job/memory.stat", "anon 7\ninactive_file 30000\n");
  write("groups/job/step/memory.max", "max\n");
  write("groups/job/step/memory.current", "50000\n");
  EXPECT_EQ(found(), 500000U - 70000U);
  write("groups/job/memory.current", "600000\n");
  EXPECT_EQ(found(), 0U);
}

TEST_F(AvailableMemory, ControlGroupsOfVersion1) {
  write("proc/meminfo", "MemAvailable:    800 kB\n");
  write("proc/self/cgroup", "9:cpu:/x\n8:memory:/job\n");
  write("groups/memory/job/memory.limit_in_bytes", "3000\n");
  write("groups/memory/job/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(found(), 2000U);
}

TEST(AvailableMemoryHere, IsKnown) {
  EXPECT_GT(available_memory().value_or(0), 0U);
}

}  // namespace
}  // namespace paceline

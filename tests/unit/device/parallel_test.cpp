#include "engine/device/cpu/parallel.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/launch/expect_error.h"

extern "C" void omp_set_max_active_levels(int levels);

namespace paceline {
namespace {

TEST(Parallel, ALimitedTeamIsRefused) {
  omp_set_max_active_levels(0);
  EXPECT_ERROR(cpu::Parallel(2, {}), usage, "OpenMP starts only 1 of 2 compute threads");
  omp_set_max_active_levels(1);
  std::vector<int> calls(2, 0);
  cpu::Parallel(2, {}).each([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
  EXPECT_EQ(calls, (std::vector<int>{1, 1}));
}

}  // namespace
}  // namespace paceline

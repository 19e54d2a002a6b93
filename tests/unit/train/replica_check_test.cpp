#include "engine/train/replica_check.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(WhoDiffers, TheMajorityIsRight) {
  EXPECT_EQ(who_differs({7, 7, 9, 7}), "rank 2 differs from ranks 0-1, 3");
  EXPECT_EQ(who_differs({9, 7, 7, 8, 7}), "ranks 0, 3 differ from ranks 1-2, 4");
}

TEST(WhoDiffers, WithoutAMajorityAllAreNamed) {
  EXPECT_EQ(who_differs({7, 9}), "ranks 0 and 1 differ");
  EXPECT_EQ(who_differs({7, 7, 9, 9}), "ranks 0-3 differ, none of them with a majority");
}

}  // namespace
}  // namespace paceline

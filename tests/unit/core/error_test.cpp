#include "engine/core/error.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Error, LineHoldsWhatWhereAndFix) {
  EXPECT_STREQ(Error(ErrorKind::usage, "batch is 0", "--batch", "give at least 1").what(),
               "batch is 0 (--batch); give at least 1");
  EXPECT_STREQ(Error(ErrorKind::usage, "batch is 0").what(), "batch is 0");
}

TEST(Error, RankComesFirstAndLineBreaksGo) {
  Error error(ErrorKind::stall, "rank 1\ndid not come");
  EXPECT_FALSE(error.rank());
  error.on_rank(3);
  EXPECT_STREQ(error.what(), "rank 3: rank 1 did not come");
  EXPECT_EQ(error.rank(), 3);
}

TEST(Error, ExitCodesAreThePromisedOnes) {
  const std::pair<ErrorKind, int> table[] = {{ErrorKind::usage, 64},    {ErrorKind::input, 65},
                                             {ErrorKind::internal, 70}, {ErrorKind::peer_lost, 71},
                                             {ErrorKind::stall, 72},    {ErrorKind::mismatch, 73},
                                             {ErrorKind::preempted, 75}};
  for (const auto& [kind, code] : table) {
    EXPECT_EQ(exit_code(kind), code);
    EXPECT_EQ(kind_of_exit_code(code), kind);
  }
  EXPECT_EQ(kind_of_exit_code(139), ErrorKind::internal);
  EXPECT_EQ(exit_code(ErrorKind::diverged), 1);
  EXPECT_EQ(kind_of_exit_code(1), ErrorKind::internal);  // any program's
}

}  // namespace
}  // namespace paceline

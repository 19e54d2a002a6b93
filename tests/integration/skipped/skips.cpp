// A program that skips, passes and fails, for skipped_test.sh: how it ends is what ctest goes by.
#include <gtest/gtest.h>

namespace {

TEST(Case, Skips) {
  GTEST_SKIP() << "no reason";
}

TEST(Case, Passes) {}

TEST(Case, Fails) {
  FAIL() << "by intent";
}

}  // namespace

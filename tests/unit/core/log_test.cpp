#include "engine/core/log.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

// Standard output may be a document that a script reads.
TEST(Log, GoesToStandardErrorBeforeAnybodySetsItUp) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  log::warning("a sample is bad");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: a sample is bad\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace paceline

#include <gtest/gtest.h>

#include "engine/input/loading/dataset.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

TEST(PageCache, WhatWasJustWrittenIsResidentWhereItIsKnown) {
  const Scratch scratch;
  EXPECT_FALSE(resident_share(scratch.path()));
  write_file(scratch / "a" / "1.jpg", std::string(1 << 20, 'x'));
  write_file(scratch / "b" / "2.jpg", "short");
  const auto share = resident_share(scratch.path());
  if (!share) GTEST_SKIP() << "this file system does not tell";
  EXPECT_GT(*share, 0.9);
}

}  // namespace
}  // namespace paceline

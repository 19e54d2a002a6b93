#include "engine/core/backend_stack.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(BackendStack, IsCutIntoItsParts) {
  const BackendStack plain = split_stack("mpi");
  EXPECT_EQ(plain.inside, "");
  EXPECT_EQ(plain.between, "mpi");
  EXPECT_TRUE(plain.wrappers.empty());
  const BackendStack all = split_stack("mirrored/mpi+bf16+other");
  EXPECT_EQ(all.inside, "mirrored");
  EXPECT_EQ(all.between, "mpi");
  EXPECT_EQ(all.wrappers, (std::vector<std::string>{"bf16", "other"}));
}

TEST(BackendStack, WhatIsNoStackIsRefusedWithTheForm) {
  for (const char* text : {"", "+bf16", "mpi+", "mpi++bf16", "/mpi", "mpi/", "a/b/c"}) {
    SCOPED_TRACE(text);
    expect_error(ErrorKind::usage, {"line 3", "BASE/BASE"}, [&] { split_stack(text, "line 3"); });
  }
  EXPECT_THROW(split_stack("mpi+bf16+bf16"), Error);
}

}  // namespace
}  // namespace paceline

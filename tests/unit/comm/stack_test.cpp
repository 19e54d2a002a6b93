#include <gtest/gtest.h>

#include "engine/comm/backend.h"
#include "tests/support/expect_error.h"
#include "tests/support/on_threads.h"

namespace paceline {
namespace {

std::string refusal(const std::string& stack) {
  return catch_error(ErrorKind::usage,
                     [&] { make_backend(stack, backend_table(), wrapper_table()); });
}

TEST(Stack, IsNamedAsItWasAskedFor) {
  for (const char* name :
       {"self", "mirrored", "mirrored+bf16", "null+bf16", "ring", "mirrored/ring+bf16"}) {
    EXPECT_EQ(make_backend(name, backend_table(), wrapper_table())->name(), name);
  }
}

TEST(Stack, WhatDoesNotFitIsRefused) {
  expect_parts(refusal("mirrored+bf16+bf16"), {"names +bf16 twice"});
  expect_parts(refusal("self/ring"), {"self/ring cannot be stacked"});
  expect_parts(refusal("mirrored+nonesuch"), {"\"nonesuch\" is not built"});
}

// One task has nothing to sum with others, whatever stands behind the slash.
TEST(Stack, OneTaskReportsThatNothingIsBetween) {
  const auto backend = make_backend("mirrored/ring", backend_table(), wrapper_table());
  Membership membership;
  membership.replicas_here = 2;
  const auto communicators = backend->connect(membership);
  expect_parts(backend->description(), {"nothing between tasks"});
}

// What travels is rounded to 8 bits once, and the sum once more.
TEST(Stack, CastRoundsWhatTravels) {
  const auto backend = make_backend("mirrored+bf16", backend_table(), wrapper_table());
  Membership membership;
  membership.replicas_here = 2;
  const auto communicators = backend->connect(membership);
  constexpr std::size_t kCount = 700001;  // more than what travels at once outside an arena
  on_threads(communicators.size(), [&](std::size_t i) {
    InlineLane lane;
    std::vector<float> data(kCount, 1.0F + 0x1p-9F);
    data.back() = 3.0F;
    communicators[i]->all_reduce(data.data(), kCount, DType::f32, lane, "test");
    EXPECT_EQ(data.front(), 2.0F);
    EXPECT_EQ(data.back(), 6.0F);
    std::vector<double> exact(10, 1.0 + 0x1p-40);
    communicators[i]->all_reduce(exact.data(), 10, DType::f64, lane, "test");
    EXPECT_EQ(exact[0], 2.0 + 0x1p-39);  // other types pass as they are
  });
}

}  // namespace
}  // namespace paceline

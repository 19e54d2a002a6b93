#include <gtest/gtest.h>

#include "engine/device/cuda/dnn/graph.h"

namespace paceline::cuda {
namespace {

bool allowed(Math math, const EngineNotes& notes, bool deterministic = false,
             bool may_compile = false) {
  return static_cast<bool>(admits({math, deterministic, may_compile}, notes));
}

constexpr Math kMaths[] = {Math::fp32, Math::tf32, Math::bf16, Math::fp16};

TEST(Filter, StrictFp32TakesNoTensorCores) {
  const EngineNotes notes{.tensor_cores = true};
  EXPECT_FALSE(allowed(Math::fp32, notes));
  EXPECT_TRUE(allowed(Math::tf32, notes));
  EXPECT_TRUE(allowed(Math::bf16, notes));
  EXPECT_TRUE(allowed(Math::fp16, notes));
}

TEST(Filter, NothingIsNarrowerThanItsName) {
  for (const Math math : kMaths) {
    EXPECT_TRUE(allowed(math, {}));
    EXPECT_FALSE(allowed(math, {.converts_inputs = true}));
    EXPECT_FALSE(allowed(math, {.narrow_sums = true}));
    EXPECT_FALSE(allowed(math, {.reorders_filter = true}));
  }
}

TEST(Filter, TransformsAreForFp32WithSmallTiles) {
  EXPECT_TRUE(allowed(Math::fp32, {.winograd = true}));
  EXPECT_TRUE(allowed(Math::fp32, {.fourier = true}));
  EXPECT_FALSE(allowed(Math::fp32, {.winograd = true, .large_winograd_tiles = true}));
  for (const Math math : {Math::tf32, Math::bf16, Math::fp16}) {
    EXPECT_FALSE(allowed(math, {.winograd = true}));
    EXPECT_FALSE(allowed(math, {.fourier = true}));
  }
}

TEST(Filter, WhatVariesIsNotDeterministic) {
  for (const Math math : kMaths) {
    EXPECT_TRUE(allowed(math, {.varies = true}));
    EXPECT_FALSE(allowed(math, {.varies = true}, true));
    EXPECT_TRUE(allowed(math, {}, true));
  }
}

TEST(Filter, CompilesOnlyWhereItMay) {
  EXPECT_FALSE(allowed(Math::bf16, {.compiles = true}));
  EXPECT_TRUE(allowed(Math::bf16, {.compiles = true}, false, true));
}

}  // namespace
}  // namespace paceline::cuda

#include <gtest/gtest.h>

#include "engine/core/error.h"
#include "engine/train/reducer.h"

namespace paceline {
namespace {

constexpr std::size_t kMega = 1048576 / sizeof(float);

// Gradients of these sizes, in megabytes, become ready one behind the other.
Plan make_plan(const std::vector<double>& megabytes) {
  Plan plan;
  int operation = static_cast<int>(megabytes.size());
  for (const double size : megabytes) {
    plan.arena_elements += static_cast<std::size_t>(size * static_cast<double>(kMega));
    plan.ready.push_back({operation--, plan.arena_elements});
  }
  return plan;
}

std::vector<double> sizes(const std::vector<double>& megabytes, double cap, double last_cap) {
  const Plan plan = make_plan(megabytes);
  std::vector<double> result;
  std::size_t at = 0;
  int operation = static_cast<int>(megabytes.size()) + 1;
  for (const Bucket& bucket : make_buckets(plan, cap, last_cap)) {
    EXPECT_EQ(bucket.begin, at) << "buckets are contiguous";
    EXPECT_GT(bucket.end, bucket.begin);
    EXPECT_LT(bucket.operation, operation) << "buckets follow backward";
    EXPECT_EQ(bucket.label, "bucket " + std::to_string(result.size()));
    at = bucket.end;
    operation = bucket.operation;
    result.push_back(static_cast<double>(bucket.end - bucket.begin) / static_cast<double>(kMega));
  }
  EXPECT_EQ(at, plan.arena_elements) << "buckets cover the arena";
  EXPECT_EQ(operation, 1) << "the last bucket is ready after the last backward";
  return result;
}

using Sizes = std::vector<double>;

TEST(Buckets, FillUpToTheCap) {
  EXPECT_EQ(sizes({2, 2, 2, 2, 2, 0.5}, 4, 1), (Sizes{4, 4, 2, 0.5}));
  EXPECT_EQ(sizes({2, 2, 2, 2, 2, 0.5}, 100, 1), (Sizes{10, 0.5}));
  EXPECT_EQ(sizes({2, 2, 2, 0.5}, 1, 1), (Sizes{2, 2, 2, 0.5}));  // a tensor is not split
}

TEST(Buckets, WhatIsReadyLastStandsAlone) {
  EXPECT_EQ(sizes({4, 0.5, 0.25, 0.25}, 100, 1), (Sizes{4, 1}));
  EXPECT_EQ(sizes({4, 0.5, 0.5, 0.25}, 100, 1), (Sizes{4.5, 0.75}));
  EXPECT_EQ(sizes({4, 3}, 100, 1), (Sizes{4, 3}));  // at least the last one
}

TEST(Buckets, OneBucketWhereAllIsSmall) {
  EXPECT_EQ(sizes({0.25, 0.25, 0.25}, 8, 1), Sizes{0.75});
  EXPECT_EQ(sizes({5}, 8, 1), Sizes{5});
}

TEST(Buckets, APlanWithoutParametersIsRefused) {
  EXPECT_THROW(make_buckets(Plan{}, 8, 1), Error);
}

}  // namespace
}  // namespace paceline

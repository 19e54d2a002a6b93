#include "engine/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/core/random.h"
#include "workloads/table.h"

namespace paceline {
namespace {

void expect_no_overlap(const std::vector<TensorInfo>& tensors, std::size_t size) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& a = tensors[i];
    EXPECT_EQ(a.offset % 64, 0U) << a.name;
    EXPECT_LE(a.offset + a.bytes, size) << a.name;
    for (std::size_t j = 0; j < i; ++j) {
      const TensorInfo& b = tensors[j];
      const bool apart_in_time = a.last < b.first || b.last < a.first;
      const bool apart_in_space = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      EXPECT_TRUE(apart_in_time || apart_in_space) << a.name << " and " << b.name;
    }
  }
}

// The bytes alive at the worst moment: no placement can do with less.
std::size_t lower_bound(const std::vector<TensorInfo>& tensors) {
  std::size_t worst = 0;
  for (const TensorInfo& at : tensors) {
    std::size_t alive = 0;
    for (const TensorInfo& other : tensors) {
      if (other.first <= at.first && at.first <= other.last) alive += other.bytes;
    }
    worst = std::max(worst, alive);
  }
  return worst;
}

TEST(MemoryPlan, RandomLivesNeverOverlap) {
  for (std::uint32_t round = 0; round < 200; ++round) {
    RandomSequence random(11, Stream::synthetic, round);
    std::vector<TensorInfo> tensors(1 + random.below(30));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].name = std::to_string(round) + "/" + std::to_string(i);
      tensors[i].first = static_cast<int>(random.below(20));
      tensors[i].last = tensors[i].first + static_cast<int>(random.below(10));
      tensors[i].bytes = 1 + random.below(5000);
    }
    const std::size_t size = place_tensors(tensors);
    expect_no_overlap(tensors, size);
    EXPECT_LE(size, 2 * lower_bound(tensors)) << "memory is not shared";
  }
}

TEST(MemoryPlan, WorkloadsNeverOverlapFusedOrNot) {
  for (const auto& row : workload_table()) {
    for (const bool fusing : {false, true}) {
      const Plan plan = make_plan(row.make().network, 64, DType::f32, [&](const Operation& op) {
        return fusing || !op.fused() ? Support::yes() : Support::no("no");
      });
      expect_no_overlap(plan.tensors, plan.activation_bytes);
      EXPECT_LT(plan.activation_bytes, 2 * lower_bound(plan.tensors)) << row.name;
    }
  }
}

// What each operation touches at a time must be alive then: lives are not cut short.
TEST(MemoryPlan, TensorsLiveWhileTheyAreUsed) {
  for (const auto& row : workload_table()) {
    const Plan plan = make_plan(row.make().network, 64, DType::f32, [](const Operation& op) {
      return op.fused() ? Support::no("no") : Support::yes();
    });
    const int count = static_cast<int>(plan.operations.size());
    const auto alive = [&](int tensor, int time, const Operation& op) {
      if (tensor == kNone) return;
      const TensorInfo& info = plan.tensors[static_cast<std::size_t>(tensor)];
      EXPECT_TRUE(info.first <= time && time <= info.last) << info.name << " in " << op.text();
    };
    for (int i = 0; i < count; ++i) {
      const Operation& op = plan.operations[static_cast<std::size_t>(i)];
      const int back = 2 * count - 1 - i;
      alive(op.input, i, op);
      alive(op.output, i, op);
      alive(op.saved, i, op);
      alive(op.saved, back, op);
      alive(op.input_grad, back, op);
      alive(op.output_grad, back, op);
      if (op.keeps_input) alive(op.input, back, op);
      if (op.keeps_output) alive(op.output, back, op);
    }
  }
}

}  // namespace
}  // namespace paceline

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/core/random.h"
#include "engine/plan/plan.h"
#include "workloads/workload.h"

namespace paceline {
namespace {

void expect_no_overlap(const std::vector<TensorInfo>& tensors, std::size_t size) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& a = tensors[i];
    EXPECT_EQ(a.offset % 256, 0U) << a.name;
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

// What each operation touches at a time is alive then.
void expect_alive_when_used(const Plan& plan) {
  const int count = static_cast<int>(plan.operations.size());
  const auto alive = [&](int tensor, int time, const Operation& op) {
    if (tensor == kNone) return;
    const TensorInfo& info = plan.tensors[static_cast<std::size_t>(tensor)];
    EXPECT_TRUE(info.first <= time && time <= info.last) << info.name << " in " << op.text();
  };
  for (int i = 0; i < count; ++i) {
    const Operation& op = plan.operations[static_cast<std::size_t>(i)];
    const int back = 2 * count - 1 - i;
    for (const int tensor : {op.input, op.input2, op.output, op.saved}) alive(tensor, i, op);
    for (const int tensor : {op.saved, op.input_grad, op.input2_grad, op.output_grad}) {
      alive(tensor, back, op);
    }
    if (op.keeps_input) alive(op.input, back, op);
    if (op.keeps_output) alive(op.output, back, op);
    if (op.branch) alive(op.input2, back, op);
  }
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

TEST(MemoryPlan, TensorsOfWorkloadsLiveWhileUsedAndNeverOverlap) {
  for (const auto& row : workload_table()) {
    for (const bool fusing : {false, true}) {
      const Plan plan = make_plan(row.make().network, 64, DType::f32, [&](const Operation& op) {
        return fusing || !op.fused() ? Support::yes() : Support::no("no");
      });
      expect_no_overlap(plan.tensors, plan.activation_bytes);
      EXPECT_LT(plan.activation_bytes, 2 * lower_bound(plan.tensors)) << row.name;
      expect_alive_when_used(plan);
    }
  }
}

// Blocks with identities and down-sampling branches, in any order.
Network random_resnet(std::uint32_t round) {
  RandomSequence random(13, Stream::synthetic, round);
  Network n("resnet" + std::to_string(round), {32, 32, 3}, 4);
  n.conv(8, 3, 1, 1).batch_norm(1e-3, 0.9).relu();
  int filters = 8;
  for (std::uint32_t block = 0, blocks = 1 + random.below(6); block < blocks; ++block) {
    const int start = n.last(), stride = 1 + static_cast<int>(random.below(2));
    int other = start;
    if (stride > 1) {
      filters += 8;
      n.conv(filters, 1, stride);
      if (random.below(2)) n.batch_norm(1e-3, 0.9);
      other = n.last();
    }
    n.from(start).conv(filters, 3, stride, 1).batch_norm(1e-3, 0.9).relu();
    n.conv(filters, 3, 1, 1).batch_norm(1e-3, 0.9).add(other);
    if (random.below(4)) n.relu();
  }
  n.global_average_pool().dense(4);
  return n;
}

Support fuse_some(const Operation& op, std::uint32_t round) {
  const bool refused = (op.branch && round % 2) || (op.add && round % 3 == 0);
  return refused ? Support::no("not here") : Support::yes();
}

TEST(MemoryPlan, RandomResNetsNeverOverlap) {
  for (std::uint32_t round = 0; round < 60; ++round) {
    const Plan plan = make_plan(random_resnet(round), 3, DType::f32,
                                [&](const Operation& op) { return fuse_some(op, round); });
    expect_no_overlap(plan.tensors, plan.activation_bytes);
    expect_alive_when_used(plan);
  }
}

}  // namespace
}  // namespace paceline

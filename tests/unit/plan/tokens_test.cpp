// Plans of networks of tokens.
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/unit/plan/supports.h"

namespace paceline {
namespace {

constexpr int kContext = 6, kVocabulary = 11, kWidth = 8;

Network small() {
  Network network("small", token_sample(kContext), kVocabulary);
  network.embedding(kWidth, 0.02);
  const int start = network.last();
  network.layer_norm(1e-5).dense(3 * kWidth, 0.02).attention(2).dense(kWidth, 0.01).add(start);
  return network.layer_norm(1e-5);
}

const Operation& find(const Plan& plan, OpKind kind) {
  for (const Operation& op : plan.operations) {
    if (op.kind == kind) return op;
  }
  throw std::runtime_error(to_string(kind));
}

TEST(TokenPlan, TheLossSharesTheTableOfTokens) {
  const Plan plan = make_plan(small(), 3, DType::f32, fuse_nothing);
  const Operation& loss = find(plan, OpKind::token_cross_entropy);
  const Operation& embedding = find(plan, OpKind::embedding);
  EXPECT_EQ(loss.weight, embedding.weight);
  const ParameterInfo& table = plan.parameters[static_cast<std::size_t>(loss.weight)];
  EXPECT_EQ(table.name, "embedding/tokens");
  EXPECT_EQ(table.shape, (std::vector<int>{kVocabulary, kWidth}));
  EXPECT_EQ(plan.labels_per_sample, kContext);
  // Tables, two norms, products with 24 and 8 outputs: the table of tokens counts once.
  EXPECT_EQ(plan.parameter_count, 11U * 8 + 6 * 8 + 4 * 8 + 8 * 24 + 24 + 8 * 8 + 8);
}

// Its gradient is complete when the embedding's backward is: last.
TEST(TokenPlan, TheSharedTableIsReadyLast) {
  const Plan plan = make_plan(small(), 3, DType::f32, fuse_nothing);
  ASSERT_FALSE(plan.ready.empty());
  EXPECT_EQ(plan.ready.back().operation, 0);
  EXPECT_EQ(plan.ready.back().elements, plan.arena_elements);
  const std::size_t before = plan.ready[plan.ready.size() - 2].elements;
  const auto& table = plan.parameters[static_cast<std::size_t>(plan.operations[0].weight)];
  EXPECT_GE(table.offset, before);
}

// The loss writes the gradient of its input in forward, and backward reads it.
TEST(TokenPlan, TheGradientOfTheLossLivesUntilItIsRead) {
  const Plan plan = make_plan(small(), 3, DType::f32, fuse_nothing);
  const Operation& loss = plan.operations.back();
  EXPECT_EQ(loss.input_grad, loss.output);
  const Operation& norm = plan.operations[plan.operations.size() - 2];
  EXPECT_EQ(norm.output_grad, loss.output);
  const int count = static_cast<int>(plan.operations.size());
  const TensorInfo& gradient = plan.tensors[static_cast<std::size_t>(loss.output)];
  EXPECT_EQ(gradient.first, count - 1);
  EXPECT_EQ(gradient.last, 2 * count - 1 - (count - 2));
  EXPECT_EQ(gradient.shape, loss.in);
}

// 2 FLOPs a multiply-add: products of each place, attention over all pairs of places, the logits.
TEST(TokenPlan, CountsOperations) {
  const Plan plan = make_plan(small(), 1, DType::f32, fuse_nothing);
  const double products = 2.0 * kContext * (8 * 24 + 8 * 8 + 8 * 11);
  const double attention = 2.0 * 2 * kContext * kContext * kWidth;
  EXPECT_EQ(plan.flops_per_sample, 3 * (products + attention));
}

TEST(TokenPlan, AllPlacesHaveTheTypeOfPlanes) {
  const Plan plan = make_plan(small(), 1, Precision(DType::f32, DType::bf16), fuse_nothing);
  for (const Operation& op : plan.operations) {
    EXPECT_EQ(plan.tensors[static_cast<std::size_t>(op.output)].type, DType::bf16) << op.name;
  }
}

TEST(TokenPlan, RefusesWhatDoesNotFit) {
  const auto plan = [](Network network) { make_plan(network, 1, DType::f32, fuse_nothing); };
  expect_error(ErrorKind::usage, {"heads"}, [&] { plan(small().attention(5)); });
  expect_error(ErrorKind::usage, {"embedding"}, [&] { plan(small().embedding(4, 0.1)); });
  expect_error(ErrorKind::usage, {"embedding"}, [&] { plan(small().dense(4)); });
  expect_error(ErrorKind::usage, {"label_smoothing"},
               [&] { plan(small().set_loss({.label_smoothing = 0.1})); });
}

}  // namespace
}  // namespace paceline

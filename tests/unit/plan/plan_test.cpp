#include "engine/plan/plan.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/unit/plan/supports.h"

namespace paceline {
namespace {

Support no_pooling(const Operation& op) {
  return op.pool ? Support::no("pooling stands alone") : Support::yes();
}

Network cnn() {
  Network network("cnn", {28, 28, 1}, 10);
  network.conv(32, 3).relu().max_pool(2).flatten().dense(64).relu().dropout(0.25).dense(10);
  return network;
}

TEST(Plan, ShapesFollowTheLayers) {
  Network network("n", {13, 11, 2}, 5);
  network.conv(4, 3, 2, 1).conv(6, 3).max_pool(2).flatten().dense(5);
  const Plan plan = make_plan(network, 3, DType::f32, fuse_nothing);
  ASSERT_EQ(plan.operations.size(), 6U);
  EXPECT_EQ(plan.operations[1].out,
            (Shape{7, 6, 4}));  // (13 + 2 - 3) / 2 + 1, (11 + 2 - 3) / 2 + 1
  EXPECT_EQ(plan.operations[2].out, (Shape{5, 4, 6}));
  EXPECT_EQ(plan.operations[3].out, (Shape{2, 2, 6}));  // the odd row is left out
  EXPECT_EQ(plan.operations[4].in, (Shape{1, 1, 24}));
  EXPECT_EQ(plan.operations[5].out, (Shape{1, 1, 5}));
  const auto& kernel = plan.parameters[static_cast<std::size_t>(plan.operations[2].weight)];
  EXPECT_EQ(kernel.shape, (std::vector<int>{3, 3, 4, 6}));
  EXPECT_EQ(kernel.fan_in, 36);
  EXPECT_EQ(kernel.fan_out, 54);
  EXPECT_EQ(plan.parameter_count, 3U * 3 * 2 * 4 + 4 + 3 * 3 * 4 * 6 + 6 + 24 * 5 + 5);
}

TEST(Plan, TheHeadFollowsTheClasses) {
  const Plan plan = make_plan(cnn().resize_head(100), 3, DType::f32, fuse_nothing);
  EXPECT_EQ(plan.classes, 100);
  const std::size_t head = 64U * 10 + 10, resized = 64U * 100 + 100;
  EXPECT_EQ(plan.parameter_count - resized,
            make_plan(cnn(), 3, DType::f32, fuse_nothing).parameter_count - head);
}

TEST(Plan, FusesWhatTheDeviceSupports) {
  EXPECT_EQ(texts(make_plan(cnn(), 8, DType::f32, fuse_all)),
            (std::vector<std::string>{"input", "conv2d + relu + max_pool", "dense + relu + dropout",
                                      "dense_1", "softmax_cross_entropy"}));
  EXPECT_EQ(
      texts(make_plan(cnn(), 8, DType::f32, no_pooling)),
      (std::vector<std::string>{"input", "conv2d + relu", "max_pooling2d", "dense + relu + dropout",
                                "dense_1", "softmax_cross_entropy"}));
  EXPECT_EQ(texts(make_plan(cnn(), 8, DType::f32, fuse_nothing)),
            (std::vector<std::string>{"input", "conv2d", "relu", "max_pooling2d", "dense", "relu_1",
                                      "dropout", "dense_1", "softmax_cross_entropy"}));
}

TEST(Plan, NotesEachFusionRefused) {
  std::vector<std::string> notes;
  make_plan(cnn(), 8, DType::f32, no_pooling, &notes);
  EXPECT_EQ(notes,
            std::vector<std::string>{"conv2d + relu + max_pool not fused: pooling stands alone"});
}

TEST(Plan, DropoutKeepsItsNumberAndRateThroughFusion) {
  Network network("n", {1, 1, 8}, 2);
  network.dense(4).dropout(0.5).dense(4).relu().dropout(0.25).dense(2);
  const Plan plan = make_plan(network, 2, DType::f32, fuse_all);
  const Operation& second = plan.operations[3];
  EXPECT_TRUE(second.dropout);
  EXPECT_EQ(second.rate, 0.25);
  EXPECT_EQ(second.layer, 1U);
}

TEST(Plan, ParametersLieInTheOrderInWhichGradientsBecomeReady) {
  for (const Supports& supports : {Supports(fuse_all), Supports(fuse_nothing)}) {
    const Plan plan = make_plan(cnn(), 8, DType::f32, supports);
    std::vector<std::string> names;
    std::size_t end = 0;
    for (const ParameterInfo& parameter : plan.parameters) {
      names.push_back(parameter.name);
      EXPECT_GE(parameter.offset, end) << parameter.name;
      EXPECT_LT(parameter.offset - end, 128U) << parameter.name;
      EXPECT_EQ(parameter.offset % 128, 0U) << parameter.name;
      end = parameter.offset + parameter.elements;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"dense_1/bias", "dense_1/kernel", "dense/bias",
                                               "dense/kernel", "conv2d/bias", "conv2d/kernel"}));
    EXPECT_GE(plan.arena_elements, end);
    ASSERT_EQ(plan.ready.size(), 3U);
    EXPECT_EQ(plan.ready.back().elements, plan.arena_elements);
    for (std::size_t i = 0; i < plan.ready.size(); ++i) {
      const Operation& op = plan.operations[static_cast<std::size_t>(plan.ready[i].operation)];
      const auto& kernel = plan.parameters[static_cast<std::size_t>(op.weight)];
      EXPECT_GE(plan.ready[i].elements, kernel.offset + kernel.elements);
      if (i > 0) {
        EXPECT_LT(plan.ready[i].operation, plan.ready[i - 1].operation);
        EXPECT_LE(plan.ready[i - 1].elements, kernel.offset);
      }
    }
  }
}

TEST(Plan, FlopsOfBackwardLeaveOutTheFirstLayersInput) {
  const Plan plan = make_plan(cnn(), 8, DType::f32, fuse_all);
  const double conv = 2.0 * 9 * 32 * 26 * 26;  // before the fused pooling
  const double dense = 2.0 * 13 * 13 * 32 * 64, last = 2.0 * 64 * 10;
  EXPECT_EQ(forward_flops(plan.operations[1]), conv);
  EXPECT_EQ(backward_flops(plan.operations[1]), conv);
  EXPECT_EQ(forward_flops(plan.operations[2]), dense);
  EXPECT_EQ(backward_flops(plan.operations[2]), 2 * dense);
  EXPECT_EQ(plan.flops_per_sample, 2 * conv + 3 * dense + 3 * last);
  const Plan plain = make_plan(cnn(), 8, DType::f32, fuse_nothing);
  EXPECT_EQ(plain.flops_per_sample, plan.flops_per_sample);
}

void refuse(const Network& network, const std::vector<std::string>& parts) {
  expect_error(ErrorKind::usage, parts, [&] { make_plan(network, 4, DType::f32, fuse_all); });
}

TEST(Plan, MisfitsAreRefused) {
  refuse(Network("n", {8, 8, 1}, 2).dense(2), {"dense", "8 x 8 x 1", "flatten it first"});
  refuse(Network("n", {1, 1, 8}, 2).dense(3), {"ends with 3 values for 2 classes"});
  refuse(Network("n", {2, 2, 1}, 2).conv(2, 3).flatten(), {"conv2d", "smaller than the window"});
  refuse(Network("n", {2, 2, 1}, 2).conv(2, 3, 2).flatten(), {"conv2d", "smaller than the window"});
  refuse(Network("n", {2, 2, 1}, 2).max_pool(3).flatten(), {"smaller than the window"});
  expect_error(ErrorKind::usage, {"conv2d cannot run here", "no convolutions"}, [] {
    make_plan(cnn(), 4, DType::f32, [](const Operation& op) {
      return op.kind == OpKind::conv ? Support::no("no convolutions") : Support::yes();
    });
  });
}

}  // namespace
}  // namespace paceline

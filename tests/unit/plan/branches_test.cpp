// Networks that are not a chain: shapes, fusions around additions, shared gradients, statistics.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "tests/support/expect_error.h"
#include "tests/unit/plan/supports.h"

namespace paceline {
namespace {

Support no_branches(const Operation& op) {
  return op.branch ? Support::no("one batch_norm at a time") : Support::yes();
}

// Stem, an identity block and a down-sampling one.
Network resnet() {
  Network n("resnet", {8, 8, 3}, 4);
  n.conv(16, 3, 1, 1).named("stem").batch_norm(1e-3, 0.9).named("stem_bn").relu().named("stem_out");
  const int first = n.last();
  n.conv(16, 3, 1, 1).named("a").batch_norm(1e-3, 0.9).named("a_bn").add(first).named("a_add");
  n.relu().named("a_out");
  const int second = n.last();
  n.conv(32, 1, 2).named("b0").batch_norm(2e-3, 0.8).named("b0_bn");
  const int shortcut = n.last();
  n.from(second).conv(32, 3, 2, 1).named("b1").batch_norm(1e-3, 0.9).named("b1_bn").add(shortcut);
  n.named("b_add").relu().named("b_out").global_average_pool().named("pool").dense(4).named("fc");
  return n;
}

// As at the head of ResNet-50.
Network stem() {
  Network n("stem", {16, 16, 3}, 4);
  n.conv(8, 7, 2, 3).named("c").batch_norm(1e-3, 0.9).named("bn").relu().named("r");
  n.max_pool(3, 2, 1).named("p").global_average_pool().named("mean").dense(4).named("fc");
  return n;
}

const Operation& named(const Plan& plan, const std::string& name) {
  const auto it = std::find_if(plan.operations.begin(), plan.operations.end(),
                               [&](const Operation& op) { return op.name == name; });
  if (it == plan.operations.end()) throw std::runtime_error("no operation " + name);
  return *it;
}

TEST(Branches, APoolingBehindANormKeepsItsWindow) {
  const Plan plan = make_plan(stem(), 2, DType::f32, fuse_all);
  EXPECT_EQ(texts(plan), (std::vector<std::string>{"input", "c", "bn + relu + max_pool", "mean",
                                                   "fc", "softmax_cross_entropy"}));
  const Operation norm = named(plan, "bn");
  EXPECT_EQ(norm.in, (Shape{8, 8, 8}));
  EXPECT_EQ(norm.out, (Shape{4, 4, 8}));
  EXPECT_EQ(norm.pool, 3);
  EXPECT_EQ((std::array{norm.kernel, norm.stride, norm.padding}), (std::array{3, 2, 1}));
  EXPECT_EQ(plan.tensors[static_cast<std::size_t>(norm.saved)].shape, norm.out);
  EXPECT_TRUE(named(plan, "c").bias_cancels);
}

TEST(Branches, EachLayerReadsItsInput) {
  const Plan plan = make_plan(resnet(), 2, DType::f32, fuse_nothing);
  EXPECT_EQ(texts(plan),
            (std::vector<std::string>{"input", "stem", "stem_bn", "stem_out", "a", "a_bn", "a_add",
                                      "a_out", "b0", "b0_bn", "b1", "b1_bn", "b_add", "b_out",
                                      "pool", "fc", "softmax_cross_entropy"}));
  const auto source = [&](int from) {
    return plan.operations[static_cast<std::size_t>(from)].name;
  };
  EXPECT_EQ(source(named(plan, "a_add").from), "a_bn");
  EXPECT_EQ(source(named(plan, "a_add").from2), "stem_out");
  EXPECT_EQ(source(named(plan, "b0").from), "a_out");
  EXPECT_EQ(source(named(plan, "b1").from), "a_out");
  EXPECT_EQ(source(named(plan, "b_add").from2), "b0_bn");
  EXPECT_EQ(named(plan, "b_add").out, (Shape{4, 4, 32}));
  EXPECT_EQ(named(plan, "pool").out, (Shape{1, 1, 32}));
  EXPECT_EQ(named(plan, "a_add").input2, named(plan, "stem_out").output);
}

TEST(Branches, SumsAreFusedBehindTheirLastNormalisation) {
  EXPECT_EQ(texts(make_plan(resnet(), 2, DType::f32, fuse_all)),
            (std::vector<std::string>{"input", "stem", "stem_bn + relu", "a", "a_bn + add + relu",
                                      "b0", "b1", "b1_bn + b0_bn + add + relu", "pool", "fc",
                                      "softmax_cross_entropy"}));
  std::vector<std::string> notes;
  EXPECT_EQ(texts(make_plan(resnet(), 2, DType::f32, no_branches, &notes)),
            (std::vector<std::string>{"input", "stem", "stem_bn + relu", "a", "a_bn + add + relu",
                                      "b0", "b0_bn", "b1", "b1_bn + add + relu", "pool", "fc",
                                      "softmax_cross_entropy"}));
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes[0], "b1_bn + b0_bn + add + relu not fused: one batch_norm at a time");
}

TEST(Branches, AFusedBranchKeepsItsOwnNumbers) {
  const Plan plan = make_plan(resnet(), 2, DType::f32, fuse_all);
  const Operation both = named(plan, "b1_bn");
  ASSERT_TRUE(both.branch);
  EXPECT_EQ(both.epsilon, 1e-3);
  EXPECT_EQ(both.branch->epsilon, 2e-3);
  EXPECT_EQ(both.branch->momentum, 0.8);
  const auto parameter = [&](int index) {
    return plan.parameters[static_cast<std::size_t>(index)].name;
  };
  EXPECT_EQ(parameter(both.weight), "b1_bn/gamma");
  EXPECT_EQ(parameter(both.branch->weight), "b0_bn/gamma");
  EXPECT_EQ(parameter(both.branch->bias), "b0_bn/beta");
  EXPECT_EQ(plan.statistics[static_cast<std::size_t>(both.branch->mean)].name, "b0_bn/moving_mean");
  EXPECT_EQ(both.input2, named(plan, "b0").output);
}

// A value that another operation reads too must exist: it is not fused away.
TEST(Branches, WhatTwoOperationsReadIsNotFusedAway) {
  Network n("n", {6, 6, 2}, 3);
  n.conv(4, 3, 1, 1).batch_norm(1e-3, 0.9).named("bn");
  const int norm = n.last();
  n.relu().named("r").add(norm).named("sum").global_average_pool().dense(3);
  const Plan plan = make_plan(n, 2, DType::f32, fuse_all);
  EXPECT_EQ(named(plan, "bn").text(), "bn");
  EXPECT_EQ(named(plan, "r").text(), "r");
  EXPECT_EQ(named(plan, "sum").text(), "sum");
}

bool masks_in_place(const Operation& op) {
  return op.input2_grad != kNone && op.input2_grad == op.output_grad;
}

// Of an output's readers backward meets the last first: it writes the gradient, the others add.
// What shares the gradient of its operation's output is written already.
void expect_gradients_to_be_complete(const Plan& plan) {
  std::map<int, int> writes;
  for (auto op = plan.operations.rbegin(); op != plan.operations.rend(); ++op) {
    const bool last = op->kind == OpKind::softmax_cross_entropy;
    if (!last && op->output_grad != kNone) {
      EXPECT_GT(writes[op->output_grad], 0) << op->text() << " reads a gradient nobody wrote";
    }
    if (op->input2_grad != kNone) {
      const bool first = writes[op->input2_grad]++ == 0;
      EXPECT_EQ(op->adds_input2_grad, !first && !masks_in_place(*op)) << op->text();
    }
    if (op->input_grad != kNone) {
      const bool first = writes[op->input_grad]++ == 0;
      const bool shares = op->input_grad == op->output_grad && op->from != op->from2;
      EXPECT_EQ(op->adds_input_grad, !first && !shares) << op->text();
    }
  }
}

TEST(Branches, TheFirstReaderInBackwardWritesTheOthersAdd) {
  for (const Supports& supports :
       {Supports(fuse_all), Supports(fuse_nothing), Supports(no_branches)}) {
    expect_gradients_to_be_complete(make_plan(resnet(), 2, DType::f32, supports));
  }
  const Plan plain = make_plan(resnet(), 2, DType::f32, fuse_nothing);
  EXPECT_FALSE(named(plain, "b1").adds_input_grad);
  EXPECT_TRUE(named(plain, "b0").adds_input_grad);
  EXPECT_EQ(named(plain, "b0").input_grad, named(plain, "b1").input_grad);
  EXPECT_EQ(named(plain, "b0").input_grad, named(plain, "a_out").output_grad);
}

TEST(Branches, AFusedSumPassesItsGradientOnInPlace) {
  const Plan plan = make_plan(resnet(), 2, DType::f32, fuse_all);
  const Operation identity = named(plan, "a_bn");
  EXPECT_TRUE(masks_in_place(identity));
  EXPECT_EQ(identity.input2_grad, identity.output_grad);
  EXPECT_EQ(identity.input2_grad, named(plan, "stem_bn").output_grad);
  EXPECT_TRUE(named(plan, "a").adds_input_grad);
  EXPECT_FALSE(masks_in_place(named(plan, "b1_bn"))) << "the branch has a gradient of its own";
}

// x + f(x), twice, as in a transformer: one gradient along all of it, which f's first layer adds
// to.
TEST(Branches, AnAdditionGivesItsGradientToBothSummands) {
  Network n("n", {8, 1, 4}, 3);
  n.conv(4, 1, 1, 0).named("start");
  for (const std::string block : {"a", "b"}) {
    const int start = n.last();
    n.batch_norm(1e-3, 0.9).named(block + "_norm").gelu().named(block + "_gelu");
    n.conv(4, 1, 1, 0).named(block + "_conv").add(start).named(block + "_sum");
  }
  n.global_average_pool().dense(3);
  const Plan plan = make_plan(n, 2, DType::f32, fuse_nothing);
  expect_gradients_to_be_complete(plan);
  const int gradient = named(plan, "b_sum").output_grad;
  for (const char* name : {"start", "a_conv", "a_sum", "b_conv"}) {
    EXPECT_EQ(named(plan, name).output_grad, gradient) << name;
  }
  EXPECT_TRUE(named(plan, "b_norm").adds_input_grad);
  EXPECT_FALSE(named(plan, "b_sum").adds_input_grad);
  EXPECT_EQ(named(plan, "b_gelu").output_grad, named(plan, "b_norm").output_grad);
}

// The gradient of a summand is its own where something changes the other's before it is read: GELU
// in place, a reader that adds to it (what made the summand, too), an addition that passes it on.
TEST(Branches, AGradientThatChangesIsNotShared) {
  const std::function<void(Network&, int)> cases[] = {
      [](Network& n, int start) { n.conv(4, 1, 1, 0).gelu().add(start); },
      [](Network& n, int start) {
        const int own = n.conv(4, 1, 1, 0).last();
        n.from(start).conv(4, 1, 1, 0).named("reader").from(own).add(start);
      },
      [](Network& n, int start) { n.conv(4, 1, 1, 0).add(start); },
      [](Network& n, int start) { n.conv(4, 1, 1, 0).conv(4, 1, 1, 0).add(start).add(start); }};
  for (const auto& add_to : cases) {
    Network network("n", {8, 1, 4}, 3);
    add_to(network, network.conv(4, 1, 1, 0).last());
    network.named("sum").global_average_pool().dense(3);
    const Plan plan = make_plan(network, 2, DType::f32, fuse_nothing);
    expect_gradients_to_be_complete(plan);
    const Operation sum = named(plan, "sum");
    EXPECT_EQ(sum.input2_grad, sum.output_grad);
    EXPECT_NE(sum.input_grad, sum.output_grad);
  }
}

TEST(Branches, OnlyBiasesBeforeANormalisationCancel) {
  for (const Supports& supports : {Supports(fuse_all), Supports(fuse_nothing)}) {
    const Plan plan = make_plan(resnet(), 2, DType::f32, supports);
    for (const char* name : {"stem", "a", "b0", "b1"}) {
      EXPECT_TRUE(named(plan, name).bias_cancels) << name;
    }
    EXPECT_FALSE(named(plan, "fc").bias_cancels);
  }
  Network n("n", {6, 6, 2}, 3);
  n.conv(4, 3).named("read_twice");
  const int conv = n.last();
  n.batch_norm(1e-3, 0.9).add(conv).conv(4, 3).named("behind_relu").relu().batch_norm(1e-3, 0.9);
  n.global_average_pool().dense(3);
  for (const Supports& supports : {Supports(fuse_all), Supports(fuse_nothing)}) {
    const Plan plan = make_plan(n, 2, DType::f32, supports);
    EXPECT_FALSE(named(plan, "read_twice").bias_cancels);
    EXPECT_FALSE(named(plan, "behind_relu").bias_cancels);
  }
}

TEST(Branches, StatisticsHaveAnArenaOfTheirOwn) {
  for (const Supports& supports : {Supports(fuse_all), Supports(fuse_nothing)}) {
    const Plan plan = make_plan(resnet(), 2, DType::f32, supports);
    ASSERT_EQ(plan.statistics.size(), 8U);
    std::size_t end = 0;
    for (const ParameterInfo& info : plan.statistics) {
      EXPECT_EQ(info.offset % 16, 0U) << info.name;
      EXPECT_GE(info.offset, end) << info.name;
      end = info.offset + info.elements;
      EXPECT_EQ(info.initial, contains(info.name, "variance") ? 1 : 0) << info.name;
    }
    EXPECT_GE(plan.statistics_elements, end);
    EXPECT_EQ(plan.parameter_count, 3U * 3 * 3 * 16 + 16 + 32 + 9 * 16 * 16 + 16 + 32 + 16 * 32 +
                                        32 + 64 + 9 * 16 * 32 + 32 + 64 + 32 * 4 + 4);
    for (const ParameterInfo& info : plan.parameters) {
      EXPECT_EQ(info.initial, contains(info.name, "gamma") ? 1 : 0) << info.name;
    }
  }
}

TEST(Branches, MisfitsAreRefused) {
  const auto refuse = [](const Network& network, const std::vector<std::string>& parts) {
    expect_error(ErrorKind::usage, parts, [&] { make_plan(network, 4, DType::f32, fuse_all); });
  };
  refuse(Network("n", {8, 8, 3}, 2).conv(4, 3).add(kInput), {"add", "6 x 6 x 4", "8 x 8 x 3"});
  refuse(Network("n", {8, 8, 3}, 2).max_pool(2, 2, 2), {"padding is as wide as its window"});
}

}  // namespace
}  // namespace paceline

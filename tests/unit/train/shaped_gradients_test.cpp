// Clipping and weight decay against the formulas of Keras and PyTorch, written out in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/device/update.h"

namespace paceline {
namespace {

constexpr double kShapedRate = 0.05, kDecay = 0.1;
constexpr long kShapedSteps = 12;

double shaped_gradient(long step) {
  return std::sin(1.3 * static_cast<double>(step)) + 0.2;
}

template <typename Change>
double ours(Optimizer optimizer, Change change) {
  double w = 0.5, a = initial_state(optimizer), b = 0;
  for (long step = 1; step <= kShapedSteps; ++step) {
    const double g = shaped_gradient(step);
    UpdateRule rule = update_rule(optimizer, kShapedRate, 0.8, step);
    change(rule);
    apply_update(rule, &w, &g, &a, &b, 1);
  }
  return w;
}

// torch.optim.AdamW(lr=0.05, weight_decay=0.1, eps=1e-7), whose epsilon is added to the corrected
// root: param.mul_(1 - lr * wd) first, as in Keras' AdamW. Ours has Keras' epsilon; both are far
// below these gradients.
TEST(WeightDecay, DecoupledIsThatOfAdamW) {
  double w = 0.5, m = 0, v = 0;
  for (long step = 1; step <= kShapedSteps; ++step) {
    const double g = shaped_gradient(step), t = static_cast<double>(step);
    w *= 1 - kShapedRate * kDecay;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double corrected = m / (1 - std::pow(0.9, t));
    w -= kShapedRate * corrected / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-7);
  }
  EXPECT_NEAR(ours(Optimizer::adam, [](UpdateRule& rule) { rule.decay = kShapedRate * kDecay; }), w,
              2e-6);
}

// torch.optim.SGD(lr=0.05, momentum=0.8, weight_decay=0.1): g + wd w goes into the velocity.
TEST(WeightDecay, L2IsThatOfPyTorchsSgd) {
  double w = 0.5, buffer = 0;
  for (long step = 1; step <= kShapedSteps; ++step) {
    buffer = 0.8 * buffer + (shaped_gradient(step) + kDecay * w);
    w -= kShapedRate * buffer;
  }
  EXPECT_NEAR(ours(Optimizer::momentum, [](UpdateRule& rule) { rule.l2 = kDecay; }), w, 1e-14);
}

TEST(WeightDecay, OfPlainSgdIsBothAtOnce) {
  double w = 0.5;
  for (long step = 1; step <= kShapedSteps; ++step)
    w -= kShapedRate * (shaped_gradient(step) + kDecay * w);
  EXPECT_NEAR(ours(Optimizer::sgd, [](UpdateRule& rule) { rule.l2 = kDecay; }), w, 1e-14);
  EXPECT_NEAR(ours(Optimizer::sgd, [](UpdateRule& rule) { rule.decay = kShapedRate * kDecay; }), w,
              1e-14);
}

TEST(Clipping, ByFactor) {
  double scaled = 0.5;
  for (long step = 1; step <= kShapedSteps; ++step) {
    scaled -= kShapedRate * 0.25 * shaped_gradient(step);
  }
  EXPECT_NEAR(ours(Optimizer::sgd, [](UpdateRule& rule) { rule.gradient_factor = 0.25; }), scaled,
              1e-15);
}

// tf.clip_by_global_norm: g c / max(norm, c); NaN where the norm is not finite.
TEST(Clipping, TheFactorOfANorm) {
  EXPECT_EQ(clip_factor(9, 3), 1);
  EXPECT_EQ(clip_factor(8, 3), 1);
  EXPECT_EQ(clip_factor(0, 3), 1);
  EXPECT_DOUBLE_EQ(clip_factor(16, 3), 0.75);
  EXPECT_TRUE(std::isnan(clip_factor(std::numeric_limits<double>::infinity(), 3)));
  EXPECT_TRUE(std::isnan(clip_factor(std::nan(""), 3)));
}

// Where nothing is asked for, not even the sign of a zero changes.
TEST(Clipping, LeavesPlainUpdatesAsTheyWere) {
  double w = -0.0;
  const double g = 0;
  apply_update(update_rule(Optimizer::sgd, 0.1, 0, 1), &w, &g, static_cast<double*>(nullptr),
               static_cast<double*>(nullptr), 1);
  EXPECT_TRUE(std::signbit(w));
}

TEST(Stretches, AreKernelsAndTheRest) {
  Network network("n", {8, 8, 1}, 3);
  network.conv(5, 3).batch_norm(1e-3, 0.9).relu().flatten().dense(7).dense(3);
  const Plan plan =
      make_plan(network, 1, DType::f32, [](const Operation&) { return Support::yes(); });
  const Stretches stretches(plan);
  for (const ParameterInfo& parameter : plan.parameters) {
    const bool kernel = parameter.name.ends_with("/kernel");
    EXPECT_EQ(decays(parameter), kernel) << parameter.name;
    stretches.over(parameter.offset, parameter.offset + parameter.elements,
                   [&](std::size_t, std::size_t, bool flag) { EXPECT_EQ(flag, kernel); });
  }
  // Parts join up, whatever the range; those of one kind are one part.
  for (const auto& [begin, end] :
       {std::pair{std::size_t{0}, plan.arena_elements}, {std::size_t{3}, std::size_t{40}}}) {
    std::size_t at = begin;
    bool first = true, before = false;
    stretches.over(begin, end, [&](std::size_t from, std::size_t to, bool flag) {
      EXPECT_EQ(from, at);
      EXPECT_LT(from, to);
      EXPECT_TRUE(first || flag != before);
      first = false;
      before = flag;
      at = to;
    });
    EXPECT_EQ(at, end);
  }
  stretches.over(5, 5, [](std::size_t, std::size_t, bool) { ADD_FAILURE() << "of nothing"; });
}

}  // namespace
}  // namespace paceline

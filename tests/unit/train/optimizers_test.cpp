// The update loops against the formulas as Keras' documentation writes them, in double.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/device/update.h"

namespace paceline {
namespace {

constexpr double kRate = 0.01, kMomentum = 0.8;
constexpr long kSteps = 20;

double gradient_at(long step) {
  return std::sin(1.3 * static_cast<double>(step)) + 0.2;
}

// One parameter after kSteps of our update.
double ours(Optimizer optimizer) {
  double w = 0.5, a = initial_state(optimizer), b = 0;
  for (long step = 1; step <= kSteps; ++step) {
    const double g = gradient_at(step);
    apply_update(update_rule(optimizer, kRate, kMomentum, step), &w, &g, &a, &b, 1);
  }
  return w;
}

TEST(Optimizers, Sgd) {
  double w = 0.5;
  for (long step = 1; step <= kSteps; ++step) w -= kRate * gradient_at(step);
  EXPECT_NEAR(ours(Optimizer::sgd), w, 1e-15);
}

TEST(Optimizers, Momentum) {
  double w = 0.5, velocity = 0;
  for (long step = 1; step <= kSteps; ++step) {
    velocity = kMomentum * velocity - kRate * gradient_at(step);
    w += velocity;
  }
  EXPECT_NEAR(ours(Optimizer::momentum), w, 1e-14);
}

TEST(Optimizers, Adagrad) {
  double w = 0.5, accumulator = 0.1;
  for (long step = 1; step <= kSteps; ++step) {
    const double g = gradient_at(step);
    accumulator += g * g;
    w -= kRate * g / std::sqrt(accumulator + 1e-7);
  }
  EXPECT_NEAR(ours(Optimizer::adagrad), w, 1e-14);
}

TEST(Optimizers, AdamWithTheUsualBeta2AndOneOfItsOwn) {
  for (const double beta2 : {0.999, 0.95}) {
    double w = 0.5, a = 0, b = 0, expected = 0.5, m = 0, v = 0;
    for (long step = 1; step <= kSteps; ++step) {
      const double g = gradient_at(step), t = static_cast<double>(step);
      apply_update(beta2 == 0.999 ? update_rule(Optimizer::adam, kRate, kMomentum, step)
                                  : update_rule(Optimizer::adam, kRate, 0, step, beta2),
                   &w, &g, &a, &b, 1);
      m = 0.9 * m + 0.1 * g;
      v = beta2 * v + (1 - beta2) * g * g;
      const double alpha = kRate * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(0.9, t));
      expected -= alpha * m / (std::sqrt(v) + 1e-7);
    }
    EXPECT_NEAR(w, expected, 1e-14) << beta2;
  }
}

// Epsilon stands outside the root and is not corrected: seen where gradients are as small as it.
TEST(Optimizers, AdamsEpsilonIsThatOfKeras) {
  double w = 0, a = 0, b = 0;
  const double g = 1e-7;
  apply_update(update_rule(Optimizer::adam, 1, 0, 1), &w, &g, &a, &b, 1);
  const double m = 0.1 * g, v = 0.001 * g * g;
  EXPECT_NEAR(w, -std::sqrt(0.001) / 0.1 * m / (std::sqrt(v) + 1e-7), 1e-14);
}

TEST(Optimizers, NamesAndState) {
  const std::pair<const char*, int> table[] = {
      {"sgd", 0}, {"momentum", 1}, {"adagrad", 1}, {"adam", 2}};
  for (const auto& [name, arenas] : table) EXPECT_EQ(state_arenas(parse_optimizer(name)), arenas);
  EXPECT_THROW(parse_optimizer("lion"), Error);
}

}  // namespace
}  // namespace paceline

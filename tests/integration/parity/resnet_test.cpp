// ResNets in locked steps: the reference against PyTorch's stored float64 numbers, the cpu device
// against the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/integration/parity/resnets.h"

namespace paceline::parity {
namespace {

double compute_norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// `stored`: norm, middle element, last element.
void expect_digest(const std::string& name, const std::vector<double>& values, const Json& stored) {
  constexpr double kBound = 1e-8;
  const double norm = stored.at(0);
  const double size = norm / std::sqrt(static_cast<double>(values.size()));
  EXPECT_NEAR(compute_norm(values), norm, kBound * norm) << name;
  EXPECT_NEAR(values[values.size() / 2], stored.at(1).get<double>(), kBound * size) << name;
  EXPECT_NEAR(values.back(), stored.at(2).get<double>(), kBound * size) << name;
}

void expect_step(const SteppedResNet& tested, const Json& stored, const Json& step) {
  for (std::size_t i = 0; i < stored.at("gradients").size(); ++i) {
    const std::string name = stored.at("gradients")[i];
    expect_digest(name, tested.gradient(name), step.at("gradients")[i]);
  }
  for (std::size_t i = 0; i < stored.at("statistics").size(); ++i) {
    const std::string name = stored.at("statistics")[i];
    expect_digest(name, tested.statistic(name), step.at("statistics")[i]);
  }
  for (const ParameterInfo& info : tested.plan().parameters) {
    if (tested.is_cancelled_bias(info.name)) {
      EXPECT_LT(compute_norm(tested.gradient(info.name)), 1e-10) << info.name;
    }
  }
}

void reference_repeats_pytorch(const Subject& subject, std::size_t last_step) {
  const JsonDocument document =
      read_json(std::string(PACELINE_SOURCE_DIR) + "/tests/integration/parity/resnet_parity.json");
  const Json& stored = document.value().at(subject.name);
  SteppedResNet reference(subject, "reference", "fp64");
  ASSERT_EQ(reference.plan().statistics.size(), stored.at("statistics").size());
  std::size_t done = 0;
  for (const Json& step : stored.at("steps")) {
    const std::size_t stop = step.at("step");
    if (stop > last_step) break;
    for (; done < stop; ++done) {
      reference.gradient_step(done);
      reference.update();
    }
    SCOPED_TRACE("step " + std::to_string(stop));
    const double loss = reference.gradient_step(done++);
    EXPECT_NEAR(loss, step.at("loss").get<double>(), 1e-8 * loss);
    expect_step(reference, stored, step);
    reference.update();
  }
  EXPECT_EQ(done, last_step + 1);
}

TEST(ResNetParity, SmallReferenceRepeatsPyTorchInDouble) {
  reference_repeats_pytorch(small_resnet(), 20);
}

TEST(ResNetParity, ResNet50ReferenceRepeatsPyTorchInDouble) {
  reference_repeats_pytorch(resnet50_of_64(), 1);
}

TEST(ResNetParity, DISABLED_ResNet50ReferenceRepeatsPyTorchInDoubleFor20Steps) {
  reference_repeats_pytorch(resnet50_of_64(), 20);
}

// Relative: of the loss, of a gradient by its norm, of running averages by theirs.
struct Bounds {
  double loss, gradient, statistic;
};

// Equal weights and averages at each stop.
void cpu_follows_reference(const Subject& subject, const std::string& precision,
                           const std::vector<std::size_t>& stops, const Bounds& bounds) {
  SteppedResNet reference(subject, "reference", "fp64");
  SteppedResNet cpu(subject, "cpu", precision);
  std::size_t done = 0;
  for (const std::size_t stop : stops) {
    for (; done < stop; ++done) {
      reference.gradient_step(done);
      reference.update();
    }
    SCOPED_TRACE("step " + std::to_string(stop));
    cpu.copy_state(reference);
    const double expected = reference.gradient_step(done), loss = cpu.gradient_step(done++);
    EXPECT_NEAR(loss, expected, bounds.loss * expected);
    const auto difference = [](std::vector<double> a, const std::vector<double>& b) {
      for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
      return compute_norm(a) / compute_norm(b);
    };
    for (const ParameterInfo& info : reference.plan().parameters) {
      if (reference.is_cancelled_bias(info.name)) continue;
      EXPECT_LT(difference(cpu.gradient(info.name), reference.gradient(info.name)), bounds.gradient)
          << info.name;
    }
    for (const ParameterInfo& info : reference.plan().statistics) {
      EXPECT_LT(difference(cpu.statistic(info.name), reference.statistic(info.name)),
                bounds.statistic)
          << info.name;
    }
    reference.update();
  }
}

TEST(ResNetParity, SmallCpuFollowsReferenceInFp32) {
  cpu_follows_reference(small_resnet(), "fp32", {0, 1, 5, 20}, {1e-5, 1e-3, 1e-5});
}

// Gradients by a wide bound: of half a million activations some lie so near to zero that fp32 takes
// the other side of the ReLU, and one of the 8192 behind conv5 is a percent of that layer's
// gradient.
TEST(ResNetParity, ResNet50CpuFollowsReferenceInFp32) {
  cpu_follows_reference(resnet50_of_64(), "fp32", {0, 1}, {1e-5, 0.05, 1e-5});
}

// bf16 keeps 8 bits, so more activations fall on the other side of a ReLU and other places win in
// a pooling window: up to half of a small layer's gradient.
TEST(ResNetParity, SmallCpuFollowsReferenceInBf16) {
  cpu_follows_reference(small_resnet(), "bf16", {0, 1, 5, 20}, {0.01, 0.6, 0.01});
}

}  // namespace
}  // namespace paceline::parity

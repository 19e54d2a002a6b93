// Training against PyTorch's and Keras' stored float64 losses, and the fp32 devices against the
// reference in locked steps.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "engine/core/json.h"
#include "engine/device/device.h"
#include "engine/input/loading/dataset.h"
#include "engine/train/trainer.h"
#include "tests/integration/parity/locked.h"
#include "workloads/workload.h"

namespace paceline {
namespace {

using parity::Locked;

class Stored {
 protected:
  static JsonDocument keras() {
    return read_json(std::string(PACELINE_SOURCE_DIR) +
                     "/tests/integration/parity/keras_parity.json");
  }
  static Workload mlp_with_softmax_twice() {
    for (const auto& row : workload_table()) {
      if (std::string(row.name) != "mnist-mlp") continue;
      Workload workload = row.make();
      workload.network.set_loss({.double_softmax = true});
      return workload;
    }
    throw std::runtime_error("no mnist-mlp");
  }
  static void expect_losses(Locked& locked, const std::vector<double>& expected) {
    ASSERT_EQ(expected.size(), 100U);
    for (std::size_t step = 0; step < expected.size(); ++step) {
      EXPECT_NEAR(locked.step(step), expected[step], 1e-8 * expected[step]) << "step " << step;
    }
  }
  static const DatasetPair& data() {
    static const DatasetPair pair = load_mnist(std::string(PACELINE_SOURCE_DIR) + "/data/mnist");
    return pair;
  }
};

class Parity : public Stored, public testing::TestWithParam<const char*> {};
class LiteralLoss : public Stored, public testing::Test {};

TEST_P(Parity, ReferenceRepeatsPyTorchInDouble) {
  const JsonDocument stored =
      read_json(std::string(PACELINE_SOURCE_DIR) + "/tests/integration/parity/parity.json");
  Locked reference(GetParam(), "reference", data(), 64);
  expect_losses(reference, stored.value().at(GetParam()));
}

// Keras' own layers, loss and Adam, in double.
TEST_P(Parity, ReferenceRepeatsKerasInDouble) {
  const JsonDocument stored = keras();
  Locked reference(GetParam(), "reference", data(), 64);
  expect_losses(reference, stored.value().at(GetParam()));
}

// Equal weights at steps 0, 10, 50, 100 of the reference's run; loss and each gradient compared.
TEST_P(Parity, CpuFollowsReferenceInLockedSteps) {
  Locked reference(GetParam(), "reference", data(), 64);
  Locked cpu(GetParam(), "cpu", data(), 64);
  std::size_t step = 0;
  for (const std::size_t stop : {0, 10, 50, 100}) {
    while (step < stop) reference.step(step++);
    cpu.copy_weights(reference);
    const double expected = reference.gradient_step(step), loss = cpu.gradient_step(step);
    EXPECT_NEAR(loss, expected, 1e-5 * expected) << "step " << step;
    for (std::size_t i = 0; i < reference.plan().parameters.size(); ++i) {
      EXPECT_LT(parity::gradient_error(cpu, reference, reference.plan().parameters[i].name), 1e-4)
          << reference.plan().parameters[i].name << " at step " << step;
    }
  }
}

// A softmax before a loss that takes logits. Where it is the model's last activation Keras sees it
// and goes back to the logits; where it is not, the loss hardly falls.
TEST_F(LiteralLoss, RepeatsKeras) {
  const JsonDocument stored = keras();
  const std::vector<double> twice = stored.value().at("mnist-mlp, softmax twice");
  const std::vector<double> once = stored.value().at("mnist-mlp");
  const std::vector<double> mended = stored.value().at("mnist-mlp, softmax layer");
  const Workload workload = mlp_with_softmax_twice();
  Locked reference(workload, "reference", data(), 64);
  expect_losses(reference, twice);
  for (std::size_t step = 0; step < once.size(); ++step) {
    EXPECT_NEAR(mended[step], once[step], 1e-8 * once[step]) << "step " << step;
  }
  EXPECT_GT(twice.back(), 1.46) << "log(e + 9) - 1: what a perfect network has";
  EXPECT_LT(once.back(), 0.5);
}

TEST_F(LiteralLoss, OfCpuFollowsReference) {
  const Workload workload = mlp_with_softmax_twice();
  Locked reference(workload, "reference", data(), 64), cpu(workload, "cpu", data(), 64);
  for (std::size_t step = 0; step < 10; ++step) reference.step(step);
  cpu.copy_weights(reference);
  const double expected = reference.gradient_step(10);
  EXPECT_NEAR(cpu.gradient_step(10), expected, 1e-5 * expected);
  for (const ParameterInfo& info : reference.plan().parameters) {
    EXPECT_LT(parity::gradient_error(cpu, reference, info.name), 1e-4) << info.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, Parity, testing::Values("mnist-mlp", "mnist-cnn"));

}  // namespace
}  // namespace paceline

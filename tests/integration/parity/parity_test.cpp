// Training against PyTorch's stored float64 losses, and the fp32 devices against the reference in
// locked steps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/comm/table.h"
#include "engine/core/json.h"
#include "engine/device/table.h"
#include "engine/input/dataset.h"
#include "engine/train/trainer.h"
#include "tests/integration/parity/locked.h"
#include "workloads/table.h"

namespace paceline {
namespace {

using parity::Locked;

class Parity : public testing::TestWithParam<const char*> {
 protected:
  static const DatasetPair& data() {
    static const DatasetPair pair = load_mnist(std::string(PACELINE_SOURCE_DIR) + "/data/mnist");
    return pair;
  }
};

TEST_P(Parity, ReferenceRepeatsPyTorchInDouble) {
  const JsonDocument stored =
      read_json(std::string(PACELINE_SOURCE_DIR) + "/tests/integration/parity/parity.json");
  Locked reference(GetParam(), "reference", data(), 64);
  const std::vector<double> expected = stored.value().at(GetParam());
  ASSERT_EQ(expected.size(), 100U);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(reference.step(step), expected[step], 1e-8 * expected[step]) << "step " << step;
  }
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

INSTANTIATE_TEST_SUITE_P(Workloads, Parity, testing::Values("mnist-mlp", "mnist-cnn"));

}  // namespace
}  // namespace paceline

// The reference's gradients against central finite differences of its loss.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/device/cases.h"

namespace paceline::conformance {
namespace {

class FiniteDifferences : public testing::TestWithParam<NetworkCase> {};

// All but mnist-cnn at full size: of its many ReLUs one always flips within a step of the bias that
// all pixels share; its small variant is here. And but the network whose gradients are zero.
std::vector<NetworkCase> smooth_cases() {
  std::vector<NetworkCase> cases = network_cases();
  std::erase_if(cases, [](const NetworkCase& one) {
    return one.name == "mnist-cnn" || one.name == "dropout_of_nearly_all";
  });
  return cases;
}

// About this many elements of each parameter, spread over it.
constexpr std::size_t kElements = 24;
// Error of the difference: h^2 from curvature and 1e-16 / h from rounding; small, so that hardly
// any ReLU or pooling flips within it.
constexpr double kStep = 1e-6;

TEST_P(FiniteDifferences, AgreeWithBackward) {
  Replica replica(make_device("reference"), GetParam().network, 4, false);
  const RandomBatch inputs(GetParam().network, 3, 8, 21);
  replica.loss(inputs.batch());
  replica.backward();
  std::vector<std::vector<double>> gradients;
  for (std::size_t p = 0; p < replica.plan().parameters.size(); ++p) {
    gradients.push_back(replica.program().read_gradient(static_cast<int>(p)));
  }
  for (std::size_t p = 0; p < replica.plan().parameters.size(); ++p) {
    const int index = static_cast<int>(p);
    const std::string& name = replica.plan().parameters[p].name;
    const std::vector<double>& gradient = gradients[p];
    const std::vector<double> values = replica.program().read_parameter(index);
    std::vector<double> expected, found;
    const std::size_t stride = values.size() / kElements | 1;  // odd: meets every unit
    for (std::size_t i = 0; i < values.size(); i += stride) {
      const auto loss_at = [&](double shift) {
        std::vector<double> shifted = values;
        shifted[i] += shift;
        replica.program().write_parameter(index, shifted);
        return replica.loss(inputs.batch());
      };
      expected.push_back((loss_at(kStep) - loss_at(-kStep)) / (2 * kStep));
      found.push_back(gradient[i]);
    }
    replica.program().write_parameter(index, values);
    if (replica.is_cancelled_bias(index)) {
      for (const auto* zeros : {&expected, &found}) {
        for (const double zero : *zeros) EXPECT_NEAR(zero, 0, 1e-8) << name;
      }
      continue;
    }
    EXPECT_LT(relative_error(found, expected), 1e-6) << name;
    EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [](double g) { return g != 0; }))
        << "nothing was compared for " << name;
  }
}

// torch.nn.functional.cross_entropy([[1, 2, 3, 4]], [2], label_smoothing=0.1) = 1.4901897 and its
// gradient, softmax - [0.025, 0.025, 0.925, 0.025].
TEST(Reference, SmoothsLabelsAsPyTorchDoes) {
  Network network("n", {1, 1, 1}, 4);
  network.set_loss({.label_smoothing = 0.1}).dense(4);
  Replica replica(make_device("reference"), network, 1, false);
  replica.write("dense/kernel", std::vector<double>{0, 0, 0, 0});
  replica.write("dense/bias", std::vector<double>{1, 2, 3, 4});
  const RandomBatch random(network, 1, 1, 1);
  Batch batch = random.batch();
  const std::int32_t label = 2;
  batch.labels = &label;
  EXPECT_NEAR(replica.loss(batch), 1.4901897, 1e-7);
  replica.backward();
  const double softmax[] = {0.0320586033, 0.0871443187, 0.2368828181, 0.6439142599};
  const std::vector<double> gradient = replica.gradient("dense/bias");
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(gradient[i], softmax[i] - (i == 2 ? 0.925 : 0.025), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, FiniteDifferences, testing::ValuesIn(smooth_cases()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace paceline::conformance

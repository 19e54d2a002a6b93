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
  for (std::size_t p = 0; p < replica.plan().parameters.size(); ++p) {
    const int index = static_cast<int>(p);
    const std::string& name = replica.plan().parameters[p].name;
    const std::vector<double> gradient = replica.program().read_gradient(index);
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

INSTANTIATE_TEST_SUITE_P(Networks, FiniteDifferences, testing::ValuesIn(smooth_cases()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace paceline::conformance

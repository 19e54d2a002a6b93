// Planes in bf16 against the reference in double: from equal weights and inputs, the loss and every
// gradient agree as far as eight bits of mantissa let them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "tests/conformance/device/cases.h"
#include "tests/support/expect_error.h"

namespace paceline::conformance {
namespace {

// A value is off by at most 2^-9 of itself after rounding; without ReLU that grows slowly with
// depth. Each ReLU lets a few elements near zero pass that the reference stops, or the other way
// round, which changes gradients by some 5 % a layer on random images (in any bf16 training).
constexpr double kLossBound = 0.01, kBound = 0.1, kBoundWithRelu = 0.25;
constexpr double kMeanOfBound = 0.3;  // on average over parameters and batches

std::unique_ptr<Device> make_bf16(const std::string& isa, int threads) {
  setenv("PACELINE_ISA", isa.c_str(), 1);
  DeviceOptions options;
  options.precision = "bf16";
  options.threads = threads;
  std::unique_ptr<Device> device;
  for (const auto& row : device_table()) {
    if (std::string("cpu") == row.name) device = row.make(options);
  }
  unsetenv("PACELINE_ISA");
  return device;
}

// A stem, an identity block and two that go down, the second one with the stride in its 1x1; or,
// with ReLU, the stem and the first two of them.
Network small_resnet(bool relu) {
  Network n("small_resnet", {37, 33, 3}, 5);
  const auto unit = [&](int filters, int kernel, int stride) {
    n.conv(filters, kernel, stride, kernel / 2).batch_norm(1e-5, 0.9);
  };
  const auto activate = [&] {
    if (relu) n.relu();
  };
  const auto block = [&](int filters, int stride_1x1, int stride_3x3, bool branch) {
    const int in = n.last();
    int skip = in;
    if (branch) {
      unit(2 * filters, 1, stride_1x1 * stride_3x3);
      skip = n.last();
      n.from(in);
    }
    unit(filters, 1, stride_1x1);
    unit(filters, 3, stride_3x3);
    unit(2 * filters, 1, 1);
    n.add(skip);
    activate();
  };
  unit(32, 7, 2);
  activate();
  n.max_pool(3, 2, 1);
  block(32, 1, 1, true);
  block(32, 1, 1, false);
  if (!relu) {
    block(64, 1, 2, true);
    block(64, 2, 1, true);
  }
  // No ReLU here: one of few elements that passes by chance would be a tenth of all gradients.
  n.global_average_pool().dense(16).dense(5);
  return n;
}

// Shifts that a later batch_norm takes away again have no gradient but rounding.
bool is_nothing(const std::vector<double>& gradient) {
  return std::all_of(gradient.begin(), gradient.end(),
                     [](double value) { return std::abs(value) < 1e-10; });
}

class Bf16 : public testing::TestWithParam<std::pair<const char*, int>> {
 protected:
  void SetUp() override {
    try {
      make_bf16(GetParam().first, GetParam().second);
    } catch (const Error& error) {
      unsetenv("PACELINE_ISA");
      GTEST_SKIP() << error.what();
    }
  }
};

TEST_P(Bf16, FollowsTheReference) {
  const auto [isa, threads] = GetParam();
  for (const bool relu : {false, true}) {
    const Network network = small_resnet(relu);
    const double bound = relu ? kBoundWithRelu : kBound;
    for (const bool fuse : {true, false}) {
      Replica tested(make_bf16(isa, threads), network, 8, fuse);
      Replica reference(make_device("reference"), network, 8, false);
      std::uint32_t seed = 5;
      std::vector<double> errors;
      for (const int samples : {8, 5, 8}) {
        const RandomBatch inputs(network, samples, 8, ++seed);
        const double expected = reference.loss(inputs.batch());
        EXPECT_NEAR(tested.loss(inputs.batch()), expected, kLossBound * expected);
        reference.backward();
        tested.backward();
        for (const ParameterInfo& info : reference.plan().parameters) {
          const int index = reference.parameter_index(info.name);
          const std::vector<double> wanted = reference.program().read_gradient(index);
          if (is_nothing(wanted)) continue;
          errors.push_back(relative_error(tested.gradient(info.name), wanted));
          EXPECT_LT(errors.back(), bound)
              << info.name << (fuse ? " fused, " : ", ") << samples << " samples";
        }
      }
      const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
      EXPECT_LT(sum / static_cast<double>(errors.size()), kMeanOfBound * bound);
    }
  }
}

// Sums of places, too: their gradients are added to what is there.
TEST_P(Bf16, FollowsTheReferenceInATransformer) {
  const auto [isa, threads] = GetParam();
  for (const NetworkCase& one : network_cases()) {
    if (one.name != "transformer" && one.name != "sums_of_places") continue;
    Replica tested(make_bf16(isa, threads), one.network, 3, true);
    Replica reference(make_device("reference"), one.network, 3, false);
    for (const int samples : {3, 2}) {
      const RandomBatch inputs(one.network, samples, 3, 7);
      const double expected = reference.loss(inputs.batch());
      EXPECT_NEAR(tested.loss(inputs.batch()), expected, kLossBound * expected) << one.name;
      reference.backward();
      tested.backward();
      for (const ParameterInfo& info : reference.plan().parameters) {
        const auto gradient = [&](Replica& replica) { return replica.gradient(info.name); };
        const std::vector<double> wanted = gradient(reference);
        if (is_nothing(wanted)) continue;
        EXPECT_LT(relative_error(gradient(tested), wanted), kBound)
            << one.name << ": " << info.name;
      }
    }
  }
}

TEST_P(Bf16, WarnsWhereItMayNotBeFaster) {
  const auto [isa, threads] = GetParam();
  Replica replica(make_bf16(isa, threads), small_resnet(true), 2, true);
  const std::string warning = replica.program().warning();
  EXPECT_EQ(warning.find("computed in fp32") != std::string::npos, isa == std::string("avx512"))
      << warning;
}

TEST_P(Bf16, SameBitsTwice) {
  const Network network = small_resnet(true);
  const RandomBatch inputs(network, 8, 8, 3);
  std::vector<std::vector<double>> gradients[2];
  for (auto& run : gradients) {
    Replica replica(make_bf16(GetParam().first, GetParam().second), network, 8, true);
    replica.loss(inputs.batch());
    replica.backward();
    for (std::size_t p = 0; p < replica.plan().parameters.size(); ++p) {
      run.push_back(replica.program().read_gradient(static_cast<int>(p)));
    }
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

INSTANTIATE_TEST_SUITE_P(Sets, Bf16,
                         testing::Values(std::pair("amx", 1), std::pair("amx", 2),
                                         std::pair("avx512bf16", 1), std::pair("avx512bf16", 2),
                                         std::pair("avx512", 1), std::pair("avx512", 2),
                                         std::pair("avx2", 1), std::pair("baseline", 1)),
                         [](const auto& info) {
                           return std::string(info.param.first) + "_threads_" +
                                  std::to_string(info.param.second);
                         });

TEST(Bf16Refuses, DenseLayersOnPlanes) {
  std::unique_ptr<Device> device;
  try {
    device = make_bf16("", 1);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  Network network("n", {8, 8, 3}, 2);
  network.conv(16, 3).flatten().dense(2);
  expect_error(ErrorKind::usage, {"dense reads a plane in bf16", "average pooling"},
               [&] { Replica(std::move(device), network, 2, true); });
}

}  // namespace
}  // namespace paceline::conformance

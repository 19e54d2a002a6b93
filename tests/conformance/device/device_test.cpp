// Every device of this build against the reference, from equal weights and fresh inputs, for each
// instruction set this CPU has and several numbers of threads.
#include "engine/device/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/conformance/device/recipe.h"
#include "tests/support/expect_error.h"

namespace paceline::conformance {
namespace {

struct Variant {
  std::string device, isa;
  int threads = 1;
};

void PrintTo(const Variant& variant, std::ostream* out) {
  *out << variant.device << " " << variant.isa << " with " << variant.threads << " threads";
}

std::unique_ptr<Device> make_variant(const Variant& variant) {
  setenv("PACELINE_ISA", variant.isa.c_str(), 1);
  std::unique_ptr<Device> device = make_device(variant.device, variant.threads);
  unsetenv("PACELINE_ISA");
  return device;
}

// Every instruction set on one thread, and the best one on two and three. Instruction sets that the
// CPU lacks are left out: the device refuses them.
std::vector<Variant> variants() {
  std::vector<Variant> variants;
  for (const auto& row : device_table()) {
    if (std::string(row.name) == "reference") continue;
    if (is_gpu(row.name)) {
      variants.push_back({row.name, "", 1});
      continue;
    }
    for (const char* isa : {"baseline", "sve", "avx2", "avx512", "avx512bf16"}) {
      try {
        make_variant({row.name, isa, 1});
        variants.push_back({row.name, isa, 1});
      } catch (const Error&) {
        unsetenv("PACELINE_ISA");
      }
    }
    const std::string best = variants.back().isa;
    for (const int threads : {2, 3}) variants.push_back({row.name, best, threads});
  }
  return variants;
}

class DeviceAgainstReference : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const std::string why = reason_absent(GetParam().device);
    if (!why.empty()) GTEST_SKIP() << why;
  }
  const MakeReplica make_ = [](const Network& network, int batch) {
    return Replica(make_variant(GetParam()), network, batch, true);
  };
};

void compare_statistics(Replica& tested, Replica& reference) {
  const std::vector<ParameterInfo>& all = reference.plan().statistics;
  ASSERT_EQ(tested.plan().statistics.size(), all.size());
  for (const ParameterInfo& info : all) {
    const auto a = tested.statistic(info.name), b = reference.statistic(info.name);
    EXPECT_LT(relative_error(a, b), 1e-5) << info.name;
  }
}

void compare_step(Replica& tested, Replica& reference, const Batch& batch) {
  const double expected = reference.loss(batch), loss = tested.loss(batch);
  EXPECT_NEAR(loss, expected, 1e-5 * expected);
  reference.backward();
  tested.backward();
  for (const ParameterInfo& info : reference.plan().parameters) {
    const auto a = tested.gradient(info.name), b = reference.gradient(info.name);
    const bool cancelled = reference.is_cancelled_bias(reference.parameter_index(info.name));
    if (cancelled || compute_norm(b) == 0) {
      EXPECT_LT(compute_norm(a), 1e-5) << info.name;
    } else {
      EXPECT_LT(relative_error(a, b), 1e-4) << info.name;
    }
  }
  compare_statistics(tested, reference);
}

void compare_evaluation(Replica& tested, Replica& reference, const Batch& batch) {
  tested.program().forward(batch, Mode::evaluate);
  reference.program().forward(batch, Mode::evaluate);
  const LossSums a = tested.program().take_sums(), b = reference.program().take_sums();
  EXPECT_NEAR(a.loss, b.loss, 1e-5 * b.loss);
  EXPECT_EQ(a.correct, b.correct);
  EXPECT_EQ(a.top5, b.top5);
  EXPECT_EQ(a.samples, b.samples);
}

// Whole, incomplete, empty and again whole batches in one program, so that what an earlier step
// left in memory would show.
TEST_P(DeviceAgainstReference, LossAndGradientsOfEveryNetwork) {
  for (const NetworkCase& one : network_cases()) {
    for (const bool fuse : {true, false}) {
      if (!fuse && one.network.reads_tokens()) continue;
      for (const int batch : {1, 8}) {
        if (batch == 1 && !fuse) continue;
        SCOPED_TRACE(one.name);
        Replica tested(make_variant(GetParam()), one.network, batch, fuse);
        Replica reference(make_device("reference"), one.network, batch, false);
        std::uint32_t seed = 31;
        for (const int samples : {batch, std::max(0, batch - 3), 0, batch}) {
          SCOPED_TRACE(one.name + (fuse ? " fused" : "") + ", " + std::to_string(samples) + " of " +
                       std::to_string(batch));
          const RandomBatch inputs(one.network, samples, 2 * batch, ++seed);
          compare_step(tested, reference, inputs.batch());
          compare_evaluation(tested, reference, inputs.batch());
        }
      }
    }
  }
}

// The same gradients into both update loops; the reference's formulas are tested by themselves.
TEST_P(DeviceAgainstReference, UpdatesOfEveryOptimizer) {
  Network network("n", {7, 7, 1}, 3);
  network.flatten().dense(21).relu().dense(3);
  for (const Optimizer optimizer :
       {Optimizer::sgd, Optimizer::momentum, Optimizer::adagrad, Optimizer::adam}) {
    Replica tested(make_variant(GetParam()), network, 4, true);
    Replica reference(make_device("reference"), network, 4, false);
    const std::size_t middle = 48;
    RandomSequence random(3, Stream::synthetic, 1);
    for (long step = 1; step <= 5; ++step) {
      for (const ParameterInfo& info : reference.plan().parameters) {
        std::vector<double> g(info.elements);
        for (double& value : g) value = static_cast<float>(random.normal());
        tested.program().write_gradient(tested.parameter_index(info.name), g);
        reference.program().write_gradient(reference.parameter_index(info.name), g);
      }
      const UpdateRule rule = update_rule(optimizer, 0.01, 0.9, step);
      for (Replica* replica : {&tested, &reference}) {
        replica->program().update(rule, 0, middle);
        replica->program().update(rule, middle, replica->plan().arena_elements);
        replica->program().take_sums();
      }
    }
    for (const ParameterInfo& info : reference.plan().parameters) {
      const auto a = tested.parameter(info.name), b = reference.parameter(info.name);
      EXPECT_LT(relative_error(a, b), 1e-6)
          << info.name << ", optimizer " << static_cast<int>(optimizer);
    }
  }
}

TEST_P(DeviceAgainstReference, SmoothedLossesAndTheTopFive) {
  follow_losses(make_);
}

TEST_P(DeviceAgainstReference, ClippingAndDecay) {
  follow_updates(make_, 1e-6);
}

TEST_P(DeviceAgainstReference, GradientsOfSeveralBatches) {
  follow_accumulation(make_, 1e-5);
}

bool has_nan(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

// The loss is not a number, and no gradient that is none in the reference is one in the tested.
void compare_broken_step(Replica& tested, Replica& reference, const Batch& batch) {
  const bool expected = std::isnan(reference.loss(batch)), found = std::isnan(tested.loss(batch));
  EXPECT_GE(found, expected);
  reference.backward();
  tested.backward();
  for (const ParameterInfo& info : reference.plan().parameters) {
    const auto a = tested.gradient(info.name), b = reference.gradient(info.name);
    if (!reference.is_cancelled_bias(reference.parameter_index(info.name))) {
      EXPECT_GE(has_nan(a), has_nan(b)) << info.name;
    }
  }
}

// One parameter at a time of which one value is not a number: no ReLU and no pooling hides it.
TEST_P(DeviceAgainstReference, WhatIsNoNumberReachesTheLoss) {
  if (GetParam().threads > 1) GTEST_SKIP() << "the loops are those of one thread";
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const NetworkCase& one : network_cases()) {
    for (const bool fuse : {true, false}) {
      if (!fuse && one.network.reads_tokens()) continue;
      SCOPED_TRACE(one.name + (fuse ? " fused" : ""));
      Replica tested(make_variant(GetParam()), one.network, 2, fuse);
      Replica reference(make_device("reference"), one.network, 2, false);
      const RandomBatch inputs(one.network, 2, 2, 41);
      for (const ParameterInfo& info : reference.plan().parameters) {
        SCOPED_TRACE(info.name);
        if (reference.is_cancelled_bias(reference.parameter_index(info.name))) continue;
        for (Replica* replica : {&tested, &reference}) {
          auto values = replica->parameter(info.name);
          values.front() = kNan;
          replica->write(info.name, values);
        }
        compare_broken_step(tested, reference, inputs.batch());
        for (Replica* replica : {&tested, &reference}) {
          auto values = replica->parameter(info.name);
          values.front() = 0.1F;
          replica->write(info.name, values);
        }
      }
    }
  }
}

// A pixel that is not a number, so that one element of a window of pooling is none.
TEST_P(DeviceAgainstReference, APixelThatIsNoNumberReachesTheLoss) {
  if (GetParam().threads > 1) GTEST_SKIP() << "the loops are those of one thread";
  for (const NetworkCase& one : network_cases()) {
    if (one.network.reads_tokens()) continue;  // which are whole numbers
    for (const bool fuse : {true, false}) {
      Replica tested(make_variant(GetParam()), one.network, 2, fuse);
      Replica reference(make_device("reference"), one.network, 2, false);
      const Shape sample = one.network.sample();
      for (const std::size_t pixel : {0, sample.width + 1}) {
        SCOPED_TRACE(one.name + (fuse ? " fused, " : ", ") + std::to_string(pixel));
        const RandomBatch inputs(one.network, 2, 2, 43);
        std::vector<float> images(2 * sample.elements());
        std::copy_n(inputs.batch().images, images.size(), images.begin());
        images[pixel * static_cast<std::size_t>(sample.channels)] =
            std::numeric_limits<float>::quiet_NaN();
        Batch batch = inputs.batch();
        batch.images = reinterpret_cast<const std::uint8_t*>(images.data());
        batch.image_type = DType::f32;
        compare_broken_step(tested, reference, batch);
      }
    }
  }
}

TEST(Reference, HandsOnWhatIsNoNumber) {
  Network network("n", {4, 4, 1}, 3);
  network.conv(4, 3, 1, 1).relu().max_pool(2).flatten().dense(5).relu().dense(3);
  for (const char* name : {"conv2d/kernel", "conv2d/bias", "dense/kernel", "dense/bias"}) {
    Replica replica(make_device("reference"), network, 2, false);
    auto values = replica.parameter(name);
    values.back() = std::numeric_limits<double>::quiet_NaN();
    replica.write(name, values);
    const RandomBatch inputs(network, 2, 2, 7);
    EXPECT_TRUE(std::isnan(replica.loss(inputs.batch()))) << name;
    replica.backward();
    EXPECT_TRUE(has_nan(replica.gradient("conv2d/kernel")));
  }
}

TEST_P(DeviceAgainstReference, SameBitsTwice) {
  for (const NetworkCase& one : network_cases()) {
    SCOPED_TRACE(one.name);
    const RandomBatch inputs(one.network, 8, 8, 77);
    std::vector<std::vector<double>> gradients[2];
    for (auto& run : gradients) {
      Replica replica(make_variant(GetParam()), one.network, 8, true);
      replica.loss(inputs.batch());
      replica.backward();
      for (std::size_t p = 0; p < replica.plan().parameters.size(); ++p) {
        run.push_back(replica.program().read_gradient(static_cast<int>(p)));
      }
    }
    EXPECT_EQ(gradients[0], gradients[1]) << one.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceAgainstReference, testing::ValuesIn(variants()),
                         [](const auto& info) {
                           return info.param.device + "_" + info.param.isa + "_threads_" +
                                  std::to_string(info.param.threads);
                         });

TEST(Device, ReportsWhatItCannotBe) {
  EXPECT_THROW(make_device("reference", 2), Error);
  DeviceOptions options;
  options.precision = "fp8";
  for (const auto& row : device_table()) EXPECT_THROW(row.make(options), Error) << row.name;
  EXPECT_THROW(make_variant({"cpu", "sse9", 1}), Error);
  unsetenv("PACELINE_ISA");
}

// Heads of 24 are neither whole vectors nor rows that a GPU's thread holds.
TEST(Device, HeadsOfOtherWidthsAreRefused) {
  Network network("n", token_sample(4), 9);
  network.embedding(72, 0.1).attention(1).dense(72, 0.1);
  for (const auto& row : device_table()) {
    if (std::string(row.name) == "reference" || !reason_absent(row.name).empty()) continue;
    expect_error(ErrorKind::usage, {"attention", "width"},
                 [&] { Replica(make_device(row.name), network, 2, true); });
  }
}

TEST(Device, WrongNumberOfValuesIsRefused) {
  for (const auto& row : device_table()) {
    if (!reason_absent(row.name).empty()) continue;
    Replica replica(make_device(row.name), network_cases().front().network, 2, true);
    EXPECT_THROW(replica.program().write_parameter(0, std::vector<double>(1000)), Error);
  }
}

}  // namespace
}  // namespace paceline::conformance

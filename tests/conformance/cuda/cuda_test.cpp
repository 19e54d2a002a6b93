// The CUDA device's program and kernels against the reference: emulated on the host, and on a card
// where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/cuda/gpu_runtime.h"
#include "tests/conformance/cuda/networks.h"
#include "tests/conformance/device/recipe.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::conformance {
namespace {

std::unique_ptr<Device> make_emulated(const std::string& precision, bool replays = true,
                                      cuda::HostCounts* counts = nullptr, bool epilogues = true,
                                      bool second_stream = true,
                                      std::size_t most_logit_rows = cuda::kMostLogitRows) {
  auto runtime = cuda::make_host_runtime(counts);
  auto products = cuda::make_host_products(*runtime, epilogues);
  cuda::CudaDeviceOptions options;
  options.math = cuda::parse_math(precision);
  options.replays.parts = replays;
  options.second_stream = second_stream;
  options.most_logit_rows = most_logit_rows;
  return make_device_on(std::move(runtime), std::move(products), options);
}

enum class On { host, card };

std::unique_ptr<Device> make_gpu(On on, const std::string& precision, bool replays = true) {
  if (on == On::host) return make_emulated(precision, replays);
  DeviceOptions options;
  options.precision = precision;
  options.settings = {{"graph", replays ? "true" : "false"}, {"deterministic", "true"}};
  for (const auto& row : device_table()) {
    if (std::string(row.name) == "cuda") return row.make(options);
  }
  throw std::runtime_error("device cuda is not built here");
}

class Cuda : public testing::TestWithParam<On> {
 protected:
  void SetUp() override {
    if (GetParam() == On::host) return;
    const std::string why =
        is_gpu("cuda") ? reason_absent("cuda") : "device cuda is not built here";
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

void compare_step(Replica& tested, Replica& reference, const Batch& batch, double bound) {
  const double expected = reference.loss(batch), loss = tested.loss(batch);
  EXPECT_NEAR(loss, expected, bound * std::abs(expected));
  reference.backward();
  tested.backward();
  for (const ParameterInfo& info : reference.plan().parameters) {
    const auto a = tested.gradient(info.name), b = reference.gradient(info.name);
    if (reference.is_cancelled_bias(reference.parameter_index(info.name)) ||
        compute_norm(b) < 1e-9) {
      EXPECT_LT(compute_norm(a), 0.1 * bound) << info.name;
    } else {
      EXPECT_LT(relative_error(a, b), bound) << info.name;
    }
  }
  for (const ParameterInfo& info : reference.plan().statistics) {
    EXPECT_LT(relative_error(tested.statistic(info.name), reference.statistic(info.name)), bound)
        << info.name;
  }
}

void compare_evaluation(Replica& tested, Replica& reference, const Batch& batch, double bound) {
  tested.program().forward(batch, Mode::evaluate);
  reference.program().forward(batch, Mode::evaluate);
  const LossSums a = tested.program().take_sums(), b = reference.program().take_sums();
  EXPECT_NEAR(a.loss, b.loss, bound * std::abs(b.loss));
  EXPECT_EQ(a.samples, b.samples);
}

// Until the loss scale of fp16 is one at which gradients are finite.
void settle_scale(Replica& replica, const Network& network, int batch) {
  const RandomBatch inputs(network, batch, 2 * batch, 1);
  const auto step = [&](bool overflow) {
    replica.program().forward(inputs.batch(), Mode::train);
    replica.backward();
    if (overflow) replica.poison_gradients();
    replica.program().update(update_rule(Optimizer::sgd, 0, 0, 1), 0,
                             replica.plan().arena_elements);
  };
  for (int i = 0; i < 8; ++i) step(false);
  for (int i = 0; i < 3; ++i) step(true);  // room for other batches
  for (const ParameterInfo& info : replica.plan().statistics) {
    replica.program().write_statistic(replica.statistic_index(info.name),
                                      std::vector<double>(info.elements, info.initial));
  }
}

void follow_the_reference(std::unique_ptr<Device> device, const NetworkCase& one,
                          const std::string& precision, bool fuse, int batch, double bound) {
  Replica tested(std::move(device), one.network, batch, fuse);
  Replica reference(make_device("reference"), one.network, batch, false);
  if (precision == "fp16") settle_scale(tested, one.network, batch);
  std::uint32_t seed = 31;
  // Each shape of batch often enough to be captured and replayed.
  for (const int samples :
       {batch, batch, batch, batch, batch, batch, std::max(0, batch - 3), 0, batch}) {
    SCOPED_TRACE(one.name + (fuse ? " fused, " : ", ") + std::to_string(samples) + " of " +
                 std::to_string(batch) + " in " + precision);
    const RandomBatch inputs(one.network, samples, 2 * batch, ++seed);
    compare_step(tested, reference, inputs.batch(), bound);
    compare_evaluation(tested, reference, inputs.batch(), bound);
  }
}

void follow_the_reference(On on, const NetworkCase& one, const std::string& precision, bool fuse,
                          int batch, double bound) {
  follow_the_reference(make_gpu(on, precision), one, precision, fuse, batch, bound);
}

TEST_P(Cuda, LossAndGradientsOfEveryNetworkInFp32) {
  for (const NetworkCase& one : network_cases()) {
    for (const bool fuse : {true, false}) {
      if (!fuse && one.network.reads_tokens()) continue;  // nothing of them is fused
      if (fuse) follow_the_reference(GetParam(), one, "fp32", fuse, 1, 1e-4);
      follow_the_reference(GetParam(), one, "fp32", fuse, 5, 1e-4);
    }
  }
}

TEST_P(Cuda, SixteenBitsFollowTheReferenceAsFarAsTheyGo) {
  const NetworkCase linear{"without_relu", small_resnet(false)},
      resnet{"with_relu", small_resnet()};
  for (const bool fuse : {true, false}) {
    follow_the_reference(GetParam(), linear, "fp16", fuse, 5, 0.1);  // pooling finds more equals
    follow_the_reference(GetParam(), resnet, "fp16", fuse, 5, 0.2);
    follow_the_reference(GetParam(), linear, "bf16", fuse, 5, 0.15);
    follow_the_reference(GetParam(), resnet, "bf16", fuse, 5, 0.3);
  }
  for (const NetworkCase& one : network_cases()) {
    if (one.name == "transformer") follow_the_reference(GetParam(), one, "bf16", true, 5, 0.1);
  }
}

TEST(EmulatedCuda, TokensAreNotForFp16AndHeadsAre32Or64Wide) {
  const auto make = [](const char* precision, int width) {
    Network network("n", token_sample(4), 9);
    network.embedding(3 * width, 0.1).attention(1).dense(3 * width, 0.1);
    Replica(make_emulated(precision), network, 2, true);
  };
  expect_error(ErrorKind::usage, {"embedding", "bf16"}, [&] { make("fp16", 32); });
  expect_error(ErrorKind::usage, {"attention", "32", "64"}, [&] { make("fp32", 48); });
  Network images("n", {8, 8, 1}, 3);  // what networks of tokens have, of images
  images.conv(8, 1, 1, 0).gelu().flatten().dense(3);
  expect_error(ErrorKind::usage, {"gelu", "bf16"},
               [&] { Replica(make_emulated("fp16"), images, 2, true); });
}

// A plane in 16 bits that a dense layer reads.
TEST_P(Cuda, DenseLayersReadSixteenBits) {
  Network n("dense_after_conv", {9, 9, 1}, 4);
  n.conv(8, 3).relu().max_pool(2).flatten().dense(16).relu().dropout(0.25).dense(4);
  follow_the_reference(GetParam(), {"dense_after_conv", n}, "bf16", true, 4, 0.2);
  Network mlp("mlp", {6, 5, 1}, 4);
  mlp.flatten().dense(16).relu().dense(4);
  follow_the_reference(GetParam(), {"mlp", mlp}, "fp16", true, 4, 0.01);
}

// Bias, ReLU and the bias' gradient go with the products; where the library does not offer that,
// kernels of ours do them.
TEST(EmulatedCuda, DenseLayersNeedNoEpilogue) {
  Network network("mlp", {6, 5, 1}, 4);
  network.flatten().dense(16).relu().dropout(0.25).dense(4);
  cuda::HostCounts with, without;
  Replica tested(make_emulated("fp32", true, &without, false), network, 4, true);
  Replica expected(make_emulated("fp32", true, &with), network, 4, true);
  const RandomBatch inputs(network, 4, 4, 1);
  compare_step(tested, expected, inputs.batch(), 1e-6);
  compare_evaluation(tested, expected, inputs.batch(), 1e-6);
  EXPECT_EQ(without.kernels, with.kernels + 2 * (1 + 1) + 2);  // a step, then an evaluation
}

// Nor measurements: without them everything is as it was before something competed.
TEST(EmulatedCuda, NetworksNeedNoEpilogueAndNoMeasurements) {
  for (const NetworkCase& one : network_cases()) {
    if (one.name != "transformer" && one.name != "resnet_stem") continue;
    for (const auto& [precision, bound] : {std::pair{"fp32", 1e-4}, {"bf16", 0.1}}) {
      follow_the_reference(make_emulated(precision, true, nullptr, false), one, precision, true, 5,
                           bound);
    }
    for (const bool measured : {false, true}) {
      int folded = 0, sums = 0;
      Replica replica(make_emulated("bf16", true, nullptr, measured), one.network, 4, true);
      for (const std::string& line : replica.program().implementations()) {
        folded += line.ends_with("on the host, of 2 x 2 pixels");
        sums += line.ends_with("the bias's gradient with that of the weights");
      }
      EXPECT_EQ(folded, measured && one.name == "resnet_stem");
      EXPECT_EQ(sums, measured && one.name == "transformer" ? 8 : 0);  // two blocks of four
    }
  }
}

// Of 115 rows of logits five pieces of 22, and a rest.
TEST(EmulatedCuda, TheLossOfTokensTakesPiecesAndARest) {
  Network n("tokens", token_sample(23), 11);
  n.embedding(16, 0.3).layer_norm(1e-5);
  follow_the_reference(make_emulated("fp32", true, nullptr, true, true, 22), {"tokens", n}, "fp32",
                       true, 5, 1e-4);
}

// What a batch brings beside its samples is its own, however far the host runs ahead.
TEST(EmulatedCuda, ABatchKeepsItsEpochAndItsKey) {
  Network network("mlp", {6, 5, 1}, 4);
  network.flatten().dense(16).relu().dropout(0.5).dense(4);
  const RandomBatch inputs(network, 4, 4, 1);
  const auto compute_loss = [&](bool waits) {
    Replica replica(make_emulated("fp32", false), network, 4, true);
    Batch batch = inputs.batch();
    double loss = 0;
    for (std::uint32_t epoch = 0; epoch < 9; ++epoch) {
      batch.epoch = epoch;
      replica.program().forward(batch, Mode::train);
      if (waits) loss += replica.program().take_sums().loss;
    }
    return loss + replica.program().take_sums().loss;
  };
  EXPECT_NEAR(compute_loss(false), compute_loss(true), 1e-9);
}

struct Trajectory {
  std::vector<double> losses;
  std::vector<std::vector<double>> parameters;
  friend bool operator==(const Trajectory&, const Trajectory&) = default;
};

enum class Queued { parts, steps };

// Steps with the optimizer, bucket by bucket, the last batch incomplete.
Trajectory train(std::unique_ptr<Device> device, Queued queued = Queued::parts,
                 const Network& network = small_resnet()) {
  Lane &compute = device->compute_lane(), &comm = device->comm_lane();
  Replica replica(std::move(device), network, 4, true);
  Program& program = replica.program();
  Trajectory trajectory;
  const int last = static_cast<int>(replica.plan().operations.size()) - 1;
  const std::vector<ReadyPoint>& ready = replica.plan().ready;
  const ReadyPoint middle = ready[ready.size() / 2];
  for (int step = 1; step <= 9; ++step) {
    const RandomBatch inputs(network, step == 9 ? 3 : 4, 4, static_cast<std::uint32_t>(step));
    const UpdateRule rule = update_rule(Optimizer::adam, 0.01 / step, 0.9, step);
    Marker begin, end;
    const auto queue = [&] {
      program.forward(Mode::train);
      program.backward(last, middle.operation);
      comm.after(compute.mark());
      begin = compute.mark();
      program.backward(middle.operation - 1, 0);
      end = compute.mark();
      compute.after(comm.mark());
      program.update(rule, 0, middle.elements);
      program.update(rule, middle.elements, replica.plan().arena_elements);
    };
    Batch batch = inputs.batch();
    batch.slot = step % 2;
    program.load(batch);
    if (queued == Queued::steps) {
      program.run_step(&rule, queue);
    } else {
      queue();
    }
    trajectory.losses.push_back(program.take_sums().loss);
    EXPECT_TRUE(compute.reached(end));
    EXPECT_GT(compute.seconds_between(begin, end), 0) << "in step " << step;
  }
  for (std::size_t i = 0; i < replica.plan().parameters.size(); ++i) {
    trajectory.parameters.push_back(program.read_parameter(static_cast<int>(i)));
  }
  return trajectory;
}

TEST(EmulatedCuda, GraphsGiveTheBitsOfTheSameWorkWithoutThem) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    cuda::HostCounts with, without;
    EXPECT_EQ(train(make_emulated(precision, true, &with)),
              train(make_emulated(precision, false, &without)))
        << precision;
    // Forward, two parts of backward and two updates; those of a slot are its own.
    EXPECT_EQ(with.captures, 3U * 2 + 2) << precision;
    EXPECT_GT(with.graph_launches, with.captures);
    EXPECT_EQ(without.captures, 0U);
    EXPECT_EQ(with.kernels, without.kernels);
  }
}

TEST(EmulatedCuda, AStepOfEachSlotIsOneGraph) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    cuda::HostCounts whole, without;
    EXPECT_EQ(train(make_emulated(precision, true, &whole), Queued::steps),
              train(make_emulated(precision, false, &without)))
        << precision;
    EXPECT_EQ(whole.captures, 2U);
    EXPECT_EQ(whole.graph_launches, 4U);
    EXPECT_EQ(whole.kernels, without.kernels);
  }
}

// Where their planes are so small that a data gradient does not fill the card.
TEST(EmulatedCuda, WeightGradientsRunBesideDataGradients) {
  for (const std::string precision : {"fp32", "bf16"}) {
    EXPECT_EQ(train(make_emulated(precision)),
              train(make_emulated(precision, false, nullptr, true, false)))
        << precision;
  }
  const auto count_waits = [](const Network& network, bool second_stream) {
    cuda::HostCounts counts;
    const RandomBatch inputs(network, 2, 2, 1);  // outlives the copies that are queued
    Replica replica(make_emulated("fp32", false, &counts, true, second_stream), network, 2, true);
    replica.program().forward(inputs.batch(), Mode::train);
    const std::size_t before = counts.waits;
    replica.program().backward(static_cast<int>(replica.plan().operations.size()) - 1, 0);
    return counts.waits - before;
  };
  const auto two_layers = [](int side) {
    Network network("two_layers", {side, side, 1}, 4);
    network.conv(8, 3).relu().conv(8, 3).relu().global_average_pool().dense(4);
    return network;
  };
  EXPECT_EQ(count_waits(two_layers(8), true), 2U);  // the first has no data gradient
  EXPECT_EQ(count_waits(two_layers(8), false), 0U);
  EXPECT_EQ(count_waits(two_layers(40), true), 0U);
}

TEST(EmulatedCuda, ProfilersSeeEachOperationAsARange) {
  cuda::HostCounts counts;
  const Network network = small_resnet();
  const RandomBatch inputs(network, 4, 4, 1);  // outlives the copies that are queued
  Replica replica(make_emulated("fp32", false, &counts), network, 4, true);
  replica.program().forward(inputs.batch(), Mode::train);
  replica.program().backward(static_cast<int>(replica.plan().operations.size()) - 1, 0);
  for (const char* pass : {"forward", "backward"}) EXPECT_EQ(counts.ranges[pass], 1U) << pass;
  for (const Operation& op : replica.plan().operations)
    EXPECT_GE(counts.ranges[op.name], 2U) << op.name;
  EXPECT_EQ(counts.open_ranges, 0);
}

TEST_P(Cuda, TrainsTheSameBitsTwiceAndLearns) {
  const Trajectory first = train(make_gpu(GetParam(), "bf16"));
  EXPECT_EQ(first, train(make_gpu(GetParam(), "bf16")));
  EXPECT_EQ(first, train(make_gpu(GetParam(), "bf16", false))) << "without graphs";
  EXPECT_EQ(first, train(make_gpu(GetParam(), "bf16"), Queued::steps)) << "steps as one graph";
  EXPECT_NE(first.losses.front(), first.losses.back());
}

TEST(EmulatedCuda, NothingIsAllocatedAfterTheFirstStep) {
  cuda::HostCounts counts;
  const Network network = small_resnet();
  Replica replica(make_emulated("bf16", true, &counts), network, 4, true);
  const RandomBatch inputs(network, 4, 4, 1);
  std::size_t after_first = 0;
  for (int step = 1; step <= 6; ++step) {
    replica.program().forward(inputs.batch(), Mode::train);
    replica.program().backward(static_cast<int>(replica.plan().operations.size()) - 1, 0);
    replica.program().update(update_rule(Optimizer::adam, 0.01, 0.9, step), 0,
                             replica.plan().arena_elements);
    replica.program().take_sums();
    if (step == 1) after_first = counts.allocations;
  }
  EXPECT_EQ(counts.allocations, after_first);
}

TEST(EmulatedCuda, UpdatesAllocateNothingOnceTheirMemoryIsReserved) {
  cuda::HostCounts counts;
  const Network network = small_resnet();
  Replica replica(make_emulated("bf16", true, &counts), network, 4, true);
  const RandomBatch inputs(network, 4, 4, 1);
  Program& program = replica.program();
  const std::size_t all = replica.plan().arena_elements;
  program.reserve(Optimizer::adam, true);
  program.forward(inputs.batch(), Mode::train);
  program.backward(static_cast<int>(replica.plan().operations.size()) - 1, 0);
  const std::size_t before = counts.allocations;
  program.accumulate(Accumulate::first, 0, all);
  program.accumulate(Accumulate::last, 0, all);
  program.update(update_rule(Optimizer::adam, 0.01, 0.9, 1), 0, all);
  program.take_sums();
  EXPECT_EQ(counts.allocations, before);
}

TEST_P(Cuda, SmoothsLabelsAndCountsTheTopFive) {
  for (const bool replays : {true, false}) {
    follow_losses([&](const Network& network, int batch) {
      return Replica(make_gpu(GetParam(), "fp32", replays), network, batch, true);
    });
  }
}

TEST_P(Cuda, ClipsDecaysAndPutsGradientsTogether) {
  for (const std::string precision : {"fp32", "bf16"}) {
    SCOPED_TRACE(precision);
    const MakeReplica make = [&](const Network& network, int batch) {
      return Replica(make_gpu(GetParam(), precision), network, batch, true);
    };
    follow_updates(make, 1e-6);
    follow_accumulation(make, precision == "fp32" ? 1e-5 : 0.1);
  }
}

Network small_conv() {
  Network network("n", {4, 4, 1}, 3);
  network.conv(8, 3).relu().flatten().dense(3);
  return network;
}

// The norm is that of the gradient without its scale, and an overflow still only skips the step.
TEST_P(Cuda, ClipsWhatTheLossScaleLeavesInFp16) {
  const Network network = small_conv();
  Replica replica(make_gpu(GetParam(), "fp16"), network, 2, true);
  Program& program = replica.program();
  const RandomBatch inputs(network, 2, 2, 1);
  UpdateRule rule = update_rule(Optimizer::sgd, 1, 0, 1);
  const auto step = [&](bool overflow) {
    program.forward(inputs.batch(), Mode::train);
    program.backward(static_cast<int>(replica.plan().operations.size()) - 1, 0);
    double norm = 0;
    for (std::size_t i = 0; i < replica.plan().parameters.size(); ++i) {
      for (const double value : program.read_gradient(static_cast<int>(i))) norm += value * value;
    }
    if (overflow) replica.poison_gradients();
    rule.clip_norm = std::sqrt(norm) / 4;
    program.measure_gradients(rule);
    const std::vector<double> before = program.read_parameter(0),
                              gradient = program.read_gradient(0);
    program.update(rule, 0, replica.plan().arena_elements);
    const std::vector<double> after = program.read_parameter(0);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_NEAR(after[i], overflow ? before[i] : before[i] - gradient[i] / 4, 1e-6);
    }
  };
  step(true);
  step(false);
}

// A gradient that overflows in 16 bits must change nothing but the scale.
TEST_P(Cuda, AnInfiniteGradientSkipsTheStepInFp16) {
  const Network network = small_conv();
  Replica replica(make_gpu(GetParam(), "fp16"), network, 2, true);
  Program& program = replica.program();
  const RandomBatch inputs(network, 2, 2, 1);
  const auto step = [&](bool overflow) {
    program.forward(inputs.batch(), Mode::train);
    program.backward(static_cast<int>(replica.plan().operations.size()) - 1, 0);
    const std::vector<double> gradient = program.read_gradient(0);
    if (overflow) {
      std::vector<double> broken = gradient;
      broken[0] = std::numeric_limits<double>::infinity();
      program.write_gradient(0, broken);
    }
    program.update(update_rule(Optimizer::sgd, 0.1, 0.9, 1), 0, replica.plan().arena_elements);
    return gradient;
  };
  const std::vector<double> before = program.read_parameter(0);
  const std::vector<double> first = step(true);
  EXPECT_EQ(program.read_parameter(0), before);
  const std::vector<double> second = step(false);
  EXPECT_NE(program.read_parameter(0), before);
  EXPECT_LT(relative_error(second, first), 1e-3);  // the scale is taken out again
}

// Its rate is corrected by the steps that it took, as frameworks count them.
TEST_P(Cuda, AdamDoesNotCountStepsThatFp16Skipped) {
  const Network network = small_conv();
  const RandomBatch inputs(network, 2, 2, 1);
  const auto change = [&](int skipped) {
    Replica replica(make_gpu(GetParam(), "fp16"), network, 2, true);
    Program& program = replica.program();
    std::vector<double> before;
    for (int step = 1; step <= skipped + 1; ++step) {
      program.forward(inputs.batch(), Mode::train);
      program.backward(static_cast<int>(replica.plan().operations.size()) - 1, 0);
      if (step <= skipped) replica.poison_gradients();
      before = program.read_parameter(0);
      program.update(update_rule(Optimizer::adam, 0.01, 0, step), 0, replica.plan().arena_elements);
    }
    std::vector<double> changed = program.read_parameter(0);
    for (std::size_t i = 0; i < changed.size(); ++i) changed[i] -= before[i];
    return changed;
  };
  const std::vector<double> first = change(0);
  EXPECT_GT(compute_norm(first), 0);
  EXPECT_LT(relative_error(change(3), first), 1e-3);
}

TEST(EmulatedCuda, RefusesWhatItCannotCompute) {
  expect_error(ErrorKind::usage, {"fp8", "bf16"}, [] { cuda::parse_math("fp8"); });
}

TEST_P(Cuda, ProbesItself) {
  const ProbeFacts probe = make_gpu(GetParam(), "fp32")->probe();
  EXPECT_GT(probe.flops_per_second, 0);
  EXPECT_GT(probe.bytes_per_second, 0);
}

INSTANTIATE_TEST_SUITE_P(Emulated, Cuda, testing::Values(On::host),
                         [](const auto&) { return "host"; });
INSTANTIATE_TEST_SUITE_P(Card, Cuda, testing::Values(On::card), [](const auto&) { return "card"; });

}  // namespace
}  // namespace paceline::conformance

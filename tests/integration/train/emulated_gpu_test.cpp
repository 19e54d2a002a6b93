// A device whose memory and lanes are not the host's, trained through backends that know host
// memory only: gradients are staged, steps are timed by markers, batches are not written over too
// early.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/core/clock.h"
#include "engine/core/json.h"
#include "engine/device/cuda/gpu_runtime.h"
#include "tests/integration/train/training.h"
#include "tests/support/host_cuda/host_runtime.h"
#include "tests/support/scratch.h"

namespace paceline::training {
namespace {

std::unique_ptr<Device> emulated(cuda::Math math, cuda::ReplayOptions replays = {},
                                 cuda::HostCounts* counts = nullptr) {
  auto runtime = cuda::make_host_runtime(counts);
  auto products = cuda::make_host_products(*runtime);
  cuda::CudaDeviceOptions options;
  options.math = math;
  options.replays = replays;
  return make_device_on(std::move(runtime), std::move(products), options);
}

Run make_run(const std::string& workload, int replicas) {
  Run run;
  run.workload = workload;
  run.config.replicas = replicas;
  run.config.batch_per_replica = 8;
  run.config.step_limit = 12;  // a lone replica's are one graph each from the eighth on
  run.config.epochs = 2;
  run.config.bucket_mb = 0.2;
  run.config.last_bucket_mb = 0.1;
  run.config.evaluate = Evaluate::end;
  run.comm_threads = 1;
  return run;
}

void trains_like_the_cpu(const std::string& workload, int replicas, int input_threads) {
  SCOPED_TRACE(workload + " on " + std::to_string(replicas));
  const DatasetPair data = mnist(52, 20);  // the last batch of an epoch is incomplete
  Run run = make_run(workload, replicas);
  run.input_threads = input_threads;
  const Result expected = train(run, data);
  run.make_device = [] { return emulated(cuda::Math::fp32); };
  const Result result = train(run, data);
  EXPECT_LT(distance(result, expected), 1e-4);
  for (const auto& parameters : result.parameters) EXPECT_EQ(parameters, result.parameters[0]);
  EXPECT_NEAR(result.outcome.quality.epochs.back().test_loss.value(),
              expected.outcome.quality.epochs.back().test_loss.value(), 1e-4);
  ASSERT_EQ(result.outcome.ranks.size(), static_cast<std::size_t>(replicas));
  for (const auto& rank : result.outcome.ranks) {
    ASSERT_EQ(rank.steps.size(), result.outcome.steps);
    for (const StepTimes& step : rank.steps) {
      if (replicas == 1) {  // with no marker of its own
        EXPECT_EQ(step.seconds[static_cast<std::size_t>(Phase::communication)], 0.0F);
      }
      EXPECT_GT(step.seconds[static_cast<std::size_t>(Phase::forward)], 0.0F);
      EXPECT_GT(step.seconds[static_cast<std::size_t>(Phase::backward)], 0.0F);
      EXPECT_NEAR(std::accumulate(step.seconds.begin(), step.seconds.end(), 0.0F), step.total,
                  1e-5F);
    }
  }
  for (const RankFacts& rank : result.outcome.each_rank) {
    const PhaseSeconds& phases = rank.phases.value();
    EXPECT_EQ(phases.communication + phases.communication_hidden > 0, replicas > 1);
  }
}

// Phases come from markers, which are placed on the host's clock.
void is_traced(int replicas) {
  SCOPED_TRACE(replicas);
  const Scratch scratch;
  const TraceSetup trace{scratch / "trace.json"};
  training::Run run = make_run("mnist-mlp", replicas);
  run.make_device = [] { return emulated(cuda::Math::fp32); };
  run.trace = &trace;
  const double before = now_seconds();
  const Result result = train(run, mnist(52, 20));
  const double seconds = now_seconds() - before;
  ASSERT_TRUE(result.outcome.trace);
  const TraceOutcome& traced = *result.outcome.trace;
  EXPECT_EQ(traced.failure, "");
  EXPECT_FALSE(traced.operations) << "they are queued";
  if (replicas > 1) {
    EXPECT_GT(traced.arrows, 0U);
  }
  EXPECT_GT(traced.facts.spans, 0);
  const JsonDocument document = read_json(trace.file);
  std::size_t steps = 0;
  for (const auto& event : document.value().at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    EXPECT_GE(event.at("ts"), 0);
    EXPECT_GE(event.at("dur"), 0);
    EXPECT_LT(event.at("ts"), 1e6 * seconds);
    steps += event.at("name") == "step";
  }
  EXPECT_EQ(steps, static_cast<std::size_t>(replicas) * result.outcome.steps);
}

TEST(EmulatedGpu, IsTraced) {
  is_traced(1);
  is_traced(2);
}

TEST(EmulatedGpu, TrainsLikeTheCpu) {
  trains_like_the_cpu("mnist-mlp", 1, 0);
  trains_like_the_cpu("mnist-cnn", 1, 2);
}

TEST(EmulatedGpu, ReplicasReduceThroughTheHost) {
  trains_like_the_cpu("mnist-mlp", 2, 1);
  trains_like_the_cpu("mnist-cnn", 3, 0);
}

// Two steps a slot are queued as they are, the third is captured: one launch a step from then on.
TEST(EmulatedGpu, AStepIsOneGraph) {
  const DatasetPair data = mnist(52, 20);
  training::Run run = make_run("mnist-mlp", 1);
  run.config.drop_last = true;
  run.config.evaluate = Evaluate::none;
  const auto make_outcome = [&](cuda::ReplayOptions replays, cuda::HostCounts& counts) {
    run.make_device = [&] { return emulated(cuda::Math::fp32, replays, &counts); };
    return train(run, data);
  };
  cuda::HostCounts whole, parts, none;
  const Result expected = make_outcome({false, false}, none);
  EXPECT_EQ(make_outcome({true, true}, whole).parameters, expected.parameters);
  EXPECT_EQ(make_outcome({true, false}, parts).parameters, expected.parameters);
  EXPECT_EQ(none.graph_launches, 0U);
  EXPECT_EQ(whole.captures, 2U);
  EXPECT_EQ(whole.graph_launches, run.config.step_limit - 4);
  EXPECT_GT(parts.graph_launches, 3 * whole.graph_launches);
  EXPECT_EQ(whole.kernels, none.kernels);
}

// With a rate, a decay and a factor of clipping that differ from step to step, through replayed
// graphs.
void follows_a_recipe(int replicas) {
  SCOPED_TRACE(replicas);
  const DatasetPair data = mnist(100, 20);
  training::Run run = make_run("mnist-mlp", replicas);
  run.config.batch_per_replica = 4;
  run.config.accumulate = 2;
  run.config.step_limit = 6 * (3 - replicas);
  run.config.schedule = {.decay = Decay::cosine, .warmup_epochs = 0.6, .end_rate = 1e-4};
  run.config.optimizer = Optimizer::momentum;
  run.config.learning_rate = 0.05;
  run.config.weight_decay = 0.1;
  run.config.clip_norm = 0.5;
  const Result expected = train(run, data);
  run.make_device = [] { return emulated(cuda::Math::fp32); };
  const Result result = train(run, data);
  EXPECT_LT(distance(result, expected), 1e-4);
  EXPECT_EQ(result.parameters[0], result.parameters.back());
  EXPECT_EQ(result.outcome.quality.epochs.back().test_top5.value(),
            expected.outcome.quality.epochs.back().test_top5.value());
  run.config.clip_norm = 0;
  EXPECT_GT(distance(train(run, data), expected), 1e-4);
}

TEST(EmulatedGpu, FollowsARecipeLikeTheCpu) {
  follows_a_recipe(1);
  follows_a_recipe(2);
}

TEST(EmulatedGpu, SixteenBitsTrainTheSameOnAllReplicas) {
  const DatasetPair data = mnist(52, 20);
  training::Run run = make_run("mnist-cnn", 2);
  run.make_device = [] { return emulated(cuda::Math::bf16); };
  const Result result = train(run, data);
  EXPECT_EQ(result.parameters[0], result.parameters[1]);
  EXPECT_TRUE(std::isfinite(result.outcome.quality.epochs.back().train_loss.value()));
}

}  // namespace
}  // namespace paceline::training

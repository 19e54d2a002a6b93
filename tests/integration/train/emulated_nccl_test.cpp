// Replicas on GPUs that the host plays, summing through an NCCL that the host plays too: gradients
// in the library's memory, sums on the devices' own streams, in graphs where the device captures
// them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "engine/device/cuda/gpu_runtime.h"
#include "tests/integration/train/training.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_cuda/host_runtime.h"
#include "tests/support/scratch.h"

namespace paceline::training {
namespace {

std::unique_ptr<Device> emulated(cuda::ReplayOptions replays,
                                 std::unique_ptr<cuda::Runtime> runtime) {
  auto products = cuda::make_host_products(*runtime);
  return make_device_on(std::move(runtime), std::move(products), {.replays = replays});
}

std::unique_ptr<Device> emulated(cuda::ReplayOptions replays = {},
                                 cuda::HostCounts* counts = nullptr) {
  return emulated(replays, cuda::make_host_runtime(counts));
}

ReplicaGpus emulated_gpus(int count) {
  ReplicaGpus gpus;
  for (int i = 0; i < count; ++i) gpus.gpus.push_back({i, "pci " + std::to_string(i), "", ""});
  gpus.select = [](int) {};
  gpus.clear = [](void* data, std::size_t bytes) { std::memset(data, 0, bytes); };
  return gpus;
}

class EmulatedNccl : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("PACELINE_CUDA_LIBS", FAKE_NCCL, 1);
    setenv("FAKE_NCCL_FOLDER", scratch_.path().c_str(), 1);
  }
  void TearDown() override {
    unsetenv("FAKE_NCCL_FAIL");
    unsetenv("FAKE_NCCL_VERSION");
  }
  void use_nccl(training::Run& run, int count) {
    gpus_ = emulated_gpus(count);
    run.gpus = &gpus_;
    run.backend = "nccl";
  }
  std::string misuse() const { return file_text(scratch_ / "misuse"); }

 private:
  Scratch scratch_;
  ReplicaGpus gpus_;
};

training::Run make_run(int replicas) {
  training::Run run;
  run.workload = "mnist-cnn";
  run.config.replicas = replicas;
  run.config.batch_per_replica = 8;
  run.config.epochs = 20;
  run.config.bucket_mb = 0.2;
  run.config.last_bucket_mb = 0.1;
  return run;
}

TEST_F(EmulatedNccl, TrainsLikeReplicasOnTheCpu) {
  const DatasetPair data = mnist(60, 20);
  for (const int replicas : {2, 3}) {
    training::Run run = make_run(replicas);
    run.config.step_limit = 6;
    const Result expected = train(run, data);
    const ReplicaGpus gpus = emulated_gpus(replicas);
    run.gpus = &gpus;
    run.backend = "nccl";
    run.make_device = [] { return emulated(); };
    const Result result = train(run, data);
    EXPECT_EQ(result.outcome.plan.gradients_in_backend_memory, true);
    for (const auto& parameters : result.parameters) EXPECT_EQ(parameters, result.parameters[0]);
    EXPECT_LT(distance(result, expected), 1e-4) << replicas;
  }
  EXPECT_EQ(misuse(), "");
}

// With batches that are incomplete on some ranks, and evaluations that take rank 0 one batch more:
// every rank must capture the same steps.
TEST_F(EmulatedNccl, SumsWithinAStepsGraph) {
  const DatasetPair data = mnist(60, 25);
  training::Run run = make_run(3);
  run.workload = "mnist-mlp";
  run.config.step_limit = 18;
  run.config.evaluate = Evaluate::epoch;
  use_nccl(run, 3);
  // What all replicas did together: threads make their devices in any order.
  const auto make_result = [&](cuda::ReplayOptions replays, cuda::HostCounts& all) {
    std::vector<cuda::HostCounts> counts(3);
    std::atomic<std::size_t> next{0};
    run.make_device = [&, replays] { return emulated(replays, &counts[next++]); };
    Result result = train(run, data);
    for (const cuda::HostCounts& one : counts) {
      all.kernels += one.kernels;
      all.graph_launches += one.graph_launches;
    }
    return result;
  };
  cuda::HostCounts whole, parts, none;
  const Result expected = make_result({false, false}, none);
  const Result result = make_result({true, true}, whole);
  EXPECT_EQ(result.parameters, expected.parameters);
  EXPECT_EQ(make_result({true, false}, parts).parameters, expected.parameters);
  EXPECT_EQ(misuse(), "");
  EXPECT_LT(2 * whole.graph_launches, parts.graph_launches);
  EXPECT_EQ(whole.kernels, none.kernels);
  for (const auto& rank : result.outcome.ranks) {
    EXPECT_EQ(rank.steps.size(), 18U);
  }
  for (const RankFacts& rank : result.outcome.each_rank) {
    EXPECT_GT(rank.phases.value().communication + rank.phases->communication_hidden, 0);
  }
}

TEST_F(EmulatedNccl, SumsBetweenGraphsBelowTheVersionThatMixesThem) {
  const DatasetPair data = mnist(60, 20);
  training::Run run = make_run(2);
  run.workload = "mnist-mlp";
  run.config.step_limit = 12;
  use_nccl(run, 2);
  const auto make_result = [&](const char* version, std::size_t& launches) {
    setenv("FAKE_NCCL_VERSION", version, 1);
    std::vector<cuda::HostCounts> counts(2);
    std::atomic<std::size_t> next{0};
    run.make_device = [&] { return emulated({}, &counts[next++]); };
    Result result = train(run, data);
    launches = counts[0].graph_launches + counts[1].graph_launches;
    return result;
  };
  std::size_t parts = 0, whole = 0;
  EXPECT_EQ(make_result("22702", parts).parameters, make_result("22703", whole).parameters);
  EXPECT_LT(whole, parts);
  EXPECT_GT(whole, 0U);
  EXPECT_EQ(misuse(), "");
}

// The first sum fails: what ran by then are the kernels that had to be loaded before it.
TEST_F(EmulatedNccl, ReplicasOfAProcessComputeBeforeTheirFirstSum) {
  const DatasetPair data = mnist(60, 20);
  training::Run run = make_run(2);
  run.config.step_limit = 2;
  use_nccl(run, 2);
  std::vector<cuda::HostCounts> counts(2);
  std::atomic<std::size_t> next{0};
  run.make_device = [&] { return emulated({}, &counts[next++]); };
  setenv("FAKE_NCCL_FAIL", "1:1", 1);
  EXPECT_THROW(train(run, data), Error);
  for (const cuda::HostCounts& one : counts) EXPECT_GT(one.kernels, 0U);
}

TEST_F(EmulatedNccl, ASumThatFailsWithinAGraphEndsTheRun) {
  const DatasetPair data = mnist(64, 20);
  training::Run run = make_run(2);
  run.config.step_limit = 40;
  use_nccl(run, 2);
  run.make_device = [] { return emulated(); };
  setenv("FAKE_NCCL_FAIL", "1:60", 1);  // long after the last capture
  expect_error(ErrorKind::peer_lost, {"remote process exited"}, [&] { train(run, data); });
  EXPECT_EQ(misuse(), "");
}

// Where a stream takes no more work, as CUDA's do after a thousand launches, the launch itself
// waits.
TEST_F(EmulatedNccl, ALaunchThatBlocksIsWatched) {
  const DatasetPair data = mnist(64, 20);
  training::Run run = make_run(2);
  run.config.step_limit = 20;
  run.config.log_every = 1;
#ifdef __SANITIZE_ADDRESS__
  constexpr int kSeconds = 20;  // a step of an emulated GPU takes longer than one
#else
  constexpr int kSeconds = 2;
#endif
  run.deadlines.abort_seconds = kSeconds;
  use_nccl(run, 2);
  run.make_device = [] {
    cuda::HostOptions options;
    options.most_queued = 0;
    return emulated({}, cuda::make_host_runtime(options));
  };
  run.meddle = [](int rank, Program&, const Progress& progress) {
    if (rank == 1 && progress.step == 13) {
      std::this_thread::sleep_for(std::chrono::seconds(3 * kSeconds));
    }
  };
  const std::string late = "rank 1 did not come within " + std::to_string(kSeconds) + " s";
  expect_error(ErrorKind::stall, {late, "the launch of a step"}, [&] { train(run, data); });
}

}  // namespace
}  // namespace paceline::training

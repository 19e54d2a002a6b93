// Replicas on GPUs that the host plays, summing through an NCCL that the host plays too: gradients
// in the library's memory, sums on the devices' own streams, in graphs where the device captures
// them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "engine/device/cuda/cuda_device.h"
#include "tests/integration/train/training.h"
#include "tests/support/host_cuda/host_runtime.h"
#include "tests/support/scratch.h"

namespace paceline::training {
namespace {

std::unique_ptr<Device> played() {
  auto runtime = cuda::make_host_runtime();
  auto products = cuda::make_host_products(*runtime);
  return make_device_on(std::move(runtime), std::move(products), {});
}

ReplicaGpus played_gpus(int count) {
  ReplicaGpus gpus;
  for (int i = 0; i < count; ++i) gpus.gpus.push_back({i, "pci " + std::to_string(i), "", ""});
  gpus.select = [](int) {};
  gpus.clear = [](void* data, std::size_t bytes) { std::memset(data, 0, bytes); };
  return gpus;
}

TEST(PlayedNccl, TrainsLikeReplicasOnTheCpu) {
  const Scratch scratch;
  setenv("PACELINE_CUDA_LIBS", FAKE_NCCL, 1);
  setenv("FAKE_NCCL_FOLDER", scratch.path().c_str(), 1);
  const DatasetPair data = mnist(60, 20);
  for (const int replicas : {2, 3}) {
    training::Run run;
    run.workload = "mnist-cnn";
    run.config.replicas = replicas;
    run.config.batch_per_replica = 8;
    run.config.step_limit = 6;
    run.config.epochs = 3;
    run.config.bucket_mb = 0.2;
    run.config.last_bucket_mb = 0.1;
    const Result expected = train(run, data);
    const ReplicaGpus gpus = played_gpus(replicas);
    run.gpus = &gpus;
    run.backend = "nccl";
    run.make_device = &played;
    const Result result = train(run, data);
    EXPECT_TRUE(result.outcome.gradients_in_backend_memory);
    for (const auto& parameters : result.parameters) EXPECT_EQ(parameters, result.parameters[0]);
    double difference = 0, norm = 0;
    for (const auto& [name, values] : expected.parameters[0]) {
      const std::vector<double>& others = result.parameters[0].at(name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        difference += (others[i] - values[i]) * (others[i] - values[i]);
        norm += values[i] * values[i];
      }
    }
    EXPECT_LT(std::sqrt(difference / norm), 1e-4) << replicas;
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "misuse"));
}

}  // namespace
}  // namespace paceline::training

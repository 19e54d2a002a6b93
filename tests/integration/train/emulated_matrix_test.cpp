// Precision, accumulation, clipping and graphs in all combinations, on GPUs that the host plays:
// the same bits with graphs and without, and in fp32 what the CPU trains.
#include "engine/device/cuda/gpu_runtime.h"
#include "tests/integration/train/emulated.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::training {
namespace {

Network all_kinds() {
  Network network("all_kinds", {28, 28, 1}, 10);
  network.conv(3, 5, 4).batch_norm(1e-3, 0.9).relu().conv(4, 3, 2).relu().flatten().dense(8).relu();
  network.dropout(0.25).dense(10);
  return network;
}

std::function<std::unique_ptr<Device>()> emulated_maker(cuda::Math math,
                                                        cuda::ReplayOptions replays) {
  return [=] {
    auto runtime = cuda::make_host_runtime();
    auto products = cuda::make_host_products(*runtime);
    cuda::CudaDeviceOptions options;
    options.math = math;
    options.replays = replays;
    return make_device_on(std::move(runtime), std::move(products), options);
  };
}

class EmulatedMatrix : public OnFakeNccl {
 protected:
  EmulatedMatrix() {
    run_.network = &network_;
    run_.config.batch_per_replica = 3;
    run_.config.epochs = 2;
    run_.config.step_limit = 10;  // of each slot, two as they are, one captured, two replayed
    run_.config.drop_last = true;
    run_.config.learning_rate = 0.05;
    run_.config.optimizer = Optimizer::momentum;
    run_.config.bucket_mb = run_.config.last_bucket_mb = 0.0005;
    run_.comm_threads = 1;
  }

  Result train_on(std::function<std::unique_ptr<Device>()> make_device) {
    run_.make_device = std::move(make_device);
    Result result = train(run_, data_);
    for (const auto& parameters : result.parameters) EXPECT_EQ(parameters, result.parameters[0]);
    EXPECT_TRUE(std::isfinite(result.outcome.quality.epochs.back().train_loss.value()));
    return result;
  }
  Result train_on_cpu() {
    training::Run run = run_;
    run.backend = "mirrored";
    run.gpus = nullptr;
    run.make_device = nullptr;
    return train(run, data_);
  }
  void vary(const std::function<void()>& check) {
    for (const int accumulate : {1, 2}) {
      for (const double norm : {0.0, 0.5}) {
        SCOPED_TRACE(std::to_string(accumulate) + " batches a step, norm " + std::to_string(norm));
        run_.config.accumulate = accumulate;
        run_.config.clip_norm = norm;
        check();
      }
    }
  }

  training::Run run_;

 private:
  const Network network_ = all_kinds();
  const DatasetPair data_ = mnist(60, 8);
};

TEST_F(EmulatedMatrix, NcclSumsInEveryCombination) {
  use_gpus(run_, 2);
  for (const cuda::Math math : {cuda::Math::fp32, cuda::Math::bf16, cuda::Math::fp16}) {
    vary([&] {
      const Result plain = train_on(emulated_maker(math, {false, false}));
      EXPECT_EQ(train_on(emulated_maker(math, {true, true})).parameters, plain.parameters);
      if (math != cuda::Math::fp32) return;
      EXPECT_LT(largest_difference(plain, train_on_cpu()), 1e-4);
    });
  }
  EXPECT_EQ(misuse(), "");
}

TEST_F(EmulatedMatrix, HostsSumInEveryCombination) {
  run_.config.replicas = 2;
  vary([&] {
    const Result result = train_on(emulated_maker(cuda::Math::fp32, {}));
    EXPECT_LT(largest_difference(result, train_on_cpu()), 1e-4);
  });
}

// Batches come from a thread that writes the next one over one that was copied.
TEST_F(EmulatedMatrix, ALoneGpuIsFedByAThread) {
  run_.config.replicas = 1;
  run_.input_threads = 1;
  const Result result = train_on(emulated_maker(cuda::Math::fp32, {}));
  EXPECT_LT(largest_difference(result, train_on_cpu()), 1e-4);
}

}  // namespace
}  // namespace paceline::training

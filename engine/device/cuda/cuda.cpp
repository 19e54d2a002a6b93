// The device `cuda` on a card, and its driver.
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/lane.h"
#include "engine/core/log.h"
#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/products.h"

namespace paceline {

namespace {

using namespace cuda;

// Products that own what they try themselves out with.
class TunedProducts final : public Products {
 public:
  TunedProducts(Runtime& runtime, const VisibleGpu& gpu, const DeviceOptions& options)
      : tuner_(make_gpu_tuner(runtime, gpu.name)) {
    // fp32 wants hundreds of megabytes for its fast ways, gigabytes for large batches. Of the whole
    // memory, as choices are kept for a limit, and what is free differs from run to run.
    constexpr std::size_t kLeast = std::size_t{256} << 20, kMost = std::size_t{4} << 30;
    ProductsOptions wanted;
    wanted.workspace_limit = std::clamp(gpu.memory_bytes / 16, kLeast, kMost);
    wanted.deterministic = options.deterministic;
    wanted.compiled_convolutions = options.compiled_convolutions;
    wanted.choices_file = options.choices_file;
    wanted.tuner = tuner_.get();
    wanted.threads = std::max(1, static_cast<int>(options.setup_cpus.size()));
    wanted.enter_thread = [index = gpu.index, cpus = options.setup_cpus](int thread) {
      const auto at = static_cast<std::size_t>(thread);
      if (at < cpus.size()) bind_to(cpus[at]);
      make_gpu_driver()->select(index);
    };
    products_ = make_products(wanted);
  }
  // What was measured is worth keeping, and not worth failing for.
  ~TunedProducts() override {
    try {
      products_->save_choices();
    } catch (const Error& error) {
      log::warning("{}", error.what());
    }
  }
  std::unique_ptr<ConvPlan> conv(const ConvRequest& request) override {
    return products_->conv(request);
  }
  std::unique_ptr<MatmulPlan> matmul(const MatmulShape& shape) override {
    return products_->matmul(shape);
  }
  void announce(const std::vector<FusedRequest>& requests) override {
    products_->announce(requests);
  }
  std::unique_ptr<FusedPlan> fused(const FusedRequest& request,
                                   const FusedBaseline& baseline) override {
    return products_->fused(request, baseline);
  }
  std::string description() const override { return products_->description(); }

 private:
  std::unique_ptr<Tuner> tuner_;
  std::unique_ptr<ChosenProducts> products_;
};

VisibleGpu query_gpu(int index) {
  std::string why;
  const std::vector<VisibleGpu> gpus = make_gpu_driver()->visible(why);
  for (const VisibleGpu& gpu : gpus) {
    if (gpu.index == index) return gpu;
  }
  if (gpus.empty()) {
    throw Error(ErrorKind::usage, "device cuda needs a GPU: " + why, "",
                "run it where nvidia-smi shows one, or give --device cpu");
  }
  throw Error(ErrorKind::usage,
              fmt::format("there is no GPU {}: this process sees {}", index, gpus.size()), "",
              "see 'paceline list devices'");
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(const DeviceOptions& options) {
  CudaDeviceOptions wanted;
  wanted.math = parse_math(options.precision);
  wanted.replays = {options.graphs, options.step_graphs};
  wanted.fused_sums = options.fused_sums;
  if (!options.comm_cpus.empty()) wanted.comm_cpu = options.comm_cpus.front();
  const VisibleGpu gpu = query_gpu(options.gpu);
  // With one or two CPUs, whoever spins takes the one that decodes.
  constexpr std::size_t kFew = 2;
  const bool few = !options.setup_cpus.empty() && options.setup_cpus.size() <= kFew;
  auto runtime = make_cuda_runtime(gpu, few ? HostWaits::asleep : HostWaits::spinning);
  auto products = std::make_unique<TunedProducts>(*runtime, gpu, options);
  return make_device_on(std::move(runtime), std::move(products), wanted);
}

std::unique_ptr<GpuDriver> make_cuda_driver() {
  return make_gpu_driver();
}

}  // namespace paceline

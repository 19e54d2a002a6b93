// The device `cuda` on a card, and its driver.
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/products.h"

namespace paceline {

namespace {

using namespace cuda;

ProductsOptions products_options(Runtime& runtime, const VisibleGpu& gpu,
                                 const DeviceOptions& options) {
  // fp32 wants hundreds of megabytes for its fast ways, gigabytes for large batches. Of the whole
  // memory, as choices are kept for a limit, and what is free differs from run to run.
  constexpr std::size_t kLeast = std::size_t{256} << 20, kMost = std::size_t{4} << 30;
  ProductsOptions wanted;
  wanted.workspace_limit = std::clamp(gpu.memory_bytes / 16, kLeast, kMost);
  wanted.deterministic = options.is_on("deterministic", false);
  wanted.thorough = options.setting("tune", "quick") == "thorough";
  wanted.choices_file = options.choices_file;
  wanted.tuner = make_gpu_tuner(runtime, gpu.name);
  return wanted;
}

VisibleGpu query_gpu(int index) {
  std::string why;
  const std::vector<VisibleGpu> gpus = make_gpu_driver()->visible(why);
  for (const VisibleGpu& gpu : gpus) {
    if (gpu.index == index) return gpu;
  }
  if (gpus.empty()) {
    throw usage_error("device cuda needs a GPU: " + why, "",
                      "run it where nvidia-smi shows one, or give --device cpu");
  }
  throw usage_error(fmt::format("there is no GPU {}: this process sees {}", index, gpus.size()), "",
                    "see 'paceline list devices'");
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(const DeviceOptions& options) {
  const CudaDeviceOptions wanted = cuda_options(options);
  const VisibleGpu gpu = query_gpu(options.gpu);
  // With one or two CPUs, whoever spins takes the one that decodes.
  constexpr int kFew = 2;
  const bool few = options.replica_cpus > 0 && options.replica_cpus <= kFew;
  auto runtime = make_cuda_runtime(gpu, few ? HostWaits::asleep : HostWaits::spinning);
  auto products = make_products(products_options(*runtime, gpu, options));
  return make_device_on(std::move(runtime), std::move(products), wanted);
}

std::unique_ptr<GpuDriver> make_cuda_driver() {
  return make_gpu_driver();
}

}  // namespace paceline

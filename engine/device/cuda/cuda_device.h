// The device `cuda`: one GPU a replica. What it needs of CUDA it gets through Runtime and Products.
#pragma once

#include <memory>

#include "engine/device/cuda/replays.h"
#include "engine/device/device.h"

namespace paceline::cuda {

// fp32, tf32, bf16 or fp16; throws usage.
Math math_of(std::string_view precision);

struct CudaDeviceOptions {
  Math math = Math::fp32;
  ReplayOptions replays = {};
  int comm_cpu = -1;  // of the host thread that reduces, where a host reduces; -1: any
  bool fused_sums = false;
};

// Throws what `runtime` throws.
std::unique_ptr<Device> make_device_on(std::unique_ptr<Runtime> runtime,
                                       std::unique_ptr<Products> products,
                                       const CudaDeviceOptions& options);

}  // namespace paceline::cuda

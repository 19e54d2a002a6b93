// The device `cuda`: one GPU per replica. Uses CUDA only through Runtime and Products.
#pragma once

#include <memory>

#include "engine/device/cuda/replays.h"
#include "engine/device/device.h"

namespace paceline::cuda {

// Parses fp32, tf32, bf16 or fp16. Throws usage.
Math parse_math(std::string_view precision);

struct CudaDeviceOptions {
  Math math = Math::fp32;
  ReplayOptions replays = {};
  int comm_cpu = -1;  // CPU of the host thread that reduces, if a host reduces; -1: any
  bool fused_sums = false;
};

// Throws the errors of `runtime`.
std::unique_ptr<Device> make_device_on(std::unique_ptr<Runtime> runtime,
                                       std::unique_ptr<Products> products,
                                       const CudaDeviceOptions& options);

}  // namespace paceline::cuda

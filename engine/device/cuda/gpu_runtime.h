// The CUDA runtime on one GPU.
#pragma once

#include <string>
#include <vector>

#include "engine/device/cuda/runtime.h"
#include "engine/device/gpu_driver.h"

namespace paceline::cuda {

std::unique_ptr<GpuDriver> make_gpu_driver();

// Makes `gpu` the calling thread's device. Throws usage.
std::unique_ptr<Runtime> make_cuda_runtime(const VisibleGpu& gpu);

}  // namespace paceline::cuda

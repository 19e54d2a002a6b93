// The CUDA runtime on one GPU.
#pragma once

#include <string>
#include <vector>

#include "engine/core/support.h"
#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// A GPU that this process sees; `index` is CUDA's, after CUDA_VISIBLE_DEVICES.
struct VisibleGpu {
  int index = 0;
  std::string name, pci, uuid;  // "NVIDIA H200", "0000:1b:00.0", "GPU-..."
  int major = 0, minor = 0;     // compute capability
  std::size_t memory_bytes = 0;
};

// Those that this process sees; empty with the reason in `why`.
std::vector<VisibleGpu> visible_gpus(std::string* why = nullptr);

// Whether kernels of this build run on it; or why not.
Support runs_on(const VisibleGpu& gpu);

// Makes `gpu` the calling thread's device. Throws usage.
std::unique_ptr<Runtime> make_cuda_runtime(const VisibleGpu& gpu);

}  // namespace paceline::cuda

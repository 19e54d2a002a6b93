// The CUDA runtime on one GPU.
#pragma once

#include <string>
#include <vector>

#include "engine/device/cuda/runtime.h"
#include "engine/device/gpu_driver.h"

namespace paceline::cuda {

std::unique_ptr<GpuDriver> make_gpu_driver();

// Why a process sees no GPU. Versions are CUDA's (12040 is 12.4) of the driver, 0 if there is none,
// and of the runtime of this program; `error` is CUDA's own text, empty if it says nothing.
std::string why_no_gpu(int driver, int runtime, const std::string& error);

// How a thread of the host waits for the card. Asleep leaves its CPU to threads that prepare input,
// and wakes some microseconds later.
enum class HostWaits { spinning, asleep };

// Makes `gpu` the calling thread's device. The first in a process to use the card decides how its
// threads wait. Throws usage.
std::unique_ptr<Runtime> make_cuda_runtime(const VisibleGpu& gpu,
                                           HostWaits waits = HostWaits::spinning);

}  // namespace paceline::cuda

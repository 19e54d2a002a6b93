// The CUDA runtime on one GPU.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <typeindex>

#include "engine/core/error.h"
#include "engine/device/cuda/dnn/choice.h"
#include "engine/device/cuda/replays.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/device.h"
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

// Tries algorithms on the card itself; see dnn/choice.h.

// `runtime` outlives the tuner. `card` is the card's name.
std::unique_ptr<Tuner> make_gpu_tuner(Runtime& runtime, std::string card);

// The device `cuda`: one GPU per replica. Uses CUDA only through Runtime and Products.

// Parses fp32, tf32, bf16 or fp16. Throws usage.
Math parse_math(std::string_view precision);

struct CudaDeviceOptions {
  Math math = Math::fp32;
  ReplayOptions replays = {};
  bool second_stream = true;  // for weight gradients that run beside data gradients
  int comm_cpu = -1;          // CPU of the host thread that reduces, if a host reduces; -1: any
  std::size_t most_logit_rows = kMostLogitRows;
};

// Throws usage.
CudaDeviceOptions cuda_options(const DeviceOptions& options);

// Throws the errors of `runtime`.
std::unique_ptr<Device> make_device_on(std::unique_ptr<Runtime> runtime,
                                       std::unique_ptr<Products> products,
                                       const CudaDeviceOptions& options);

// Calls body with a value of the type of planes.
template <typename Body>
void with_type(DType type, Body body) {
  switch (type) {
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(Bf16{});
    case DType::f16:
      return body(Half{});
    default:
      throw internal_error("no planes of this type", std::string(to_string(type)));
  }
}

// The tables of kernels/table.h joined: functions that the CUDA runtime launches.
std::map<std::type_index, const void*> device_kernels();

}  // namespace paceline::cuda

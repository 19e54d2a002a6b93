// Why there is no GPU to test on; empty where there is one.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace paceline::cuda {

inline std::string no_card() {
  int count = 0, driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    return "no NVIDIA driver is loaded here";
  }
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return cudaGetErrorString(status);
  return count > 0 ? "" : "no GPU is visible";
}

}  // namespace paceline::cuda

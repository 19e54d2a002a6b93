#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/all.h"

namespace paceline::cuda {

namespace {

template <typename Kernel>
__global__ void entry(const Kernel kernel) {
  DeviceContext context;
  kernel(context);
}

struct Collect {
  std::map<std::type_index, const void*>& kernels;
  template <typename Kernel>
  void visit() {
    kernels.emplace(typeid(Kernel), reinterpret_cast<const void*>(&entry<Kernel>));
  }
};

}  // namespace

std::map<std::type_index, const void*> device_kernels() {
  std::map<std::type_index, const void*> kernels;
  for_each_kernel(Collect{kernels});
  return kernels;
}

}  // namespace paceline::cuda

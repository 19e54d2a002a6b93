#include "engine/device/cuda/kernels/table.h"

namespace paceline::cuda {

std::map<std::type_index, const void*> device_kernels() {
  return make_kernel_table().kernels;
}

}  // namespace paceline::cuda

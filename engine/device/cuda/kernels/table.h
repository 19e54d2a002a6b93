// The tables of kernels that a runtime can launch: table_NAME.cu is that of a header or two, so
// that a change compiles their kernels alone. The tests compile the same files for the host, with a
// KernelTable of their own (tests/support/host_cuda/host_table.h).
#pragma once

#include <map>
#include <typeindex>

#include "engine/device/cuda/kernels/context.h"

namespace paceline::cuda {

#ifdef __CUDACC__
template <typename Kernel>
__global__ void entry(const Kernel kernel) {
  DeviceContext context;
  kernel(context);
}

// As functions that the CUDA runtime launches.
struct DeviceTable {
  std::map<std::type_index, const void*> kernels;
  template <typename... Kernel>
  void add() {
    (kernels.emplace(typeid(Kernel), reinterpret_cast<const void*>(&entry<Kernel>)), ...);
  }
};
using KernelTable = DeviceTable;
#endif

// Kernels that exist for each element type of planes.
template <template <typename> typename... Kernel>
void add_for_planes(KernelTable& table) {
  table.add<Kernel<float>..., Kernel<Bf16>..., Kernel<Half>...>();
}

// Networks of tokens: not in fp16.
template <template <typename> typename... Kernel>
void add_for_tokens(KernelTable& table) {
  table.add<Kernel<float>..., Kernel<Bf16>...>();
}

using AddKernels = void(KernelTable& table);
AddKernels add_attention, add_elementwise, add_norm, add_norm_pool, add_pool, add_tokens,
    add_update;

inline KernelTable make_kernel_table() {
  KernelTable table;
  for (AddKernels* add : {add_attention, add_elementwise, add_norm, add_norm_pool, add_pool,
                          add_tokens, add_update}) {
    add(table);
  }
  return table;
}

}  // namespace paceline::cuda

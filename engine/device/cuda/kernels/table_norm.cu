#include "engine/device/cuda/kernels/norm.h"
#include "engine/device/cuda/kernels/table.h"

namespace paceline::cuda {

template <typename... T>
void add_types(KernelTable& table) {
  table.add<ChannelSums<NormStatistics<T>>..., ChannelSums<NormGradientSums<T, false>>...,
            ChannelSums<NormGradientSums<T, true>>..., NormApply<T>..., NormGradient<T, false>...,
            NormGradient<T, true>...>();
}

void add_norm(KernelTable& table) {
  add_types<float, Bf16, Half>(table);
  table.add<NormFixed>();
}

}  // namespace paceline::cuda

#include "engine/device/cuda/kernels/norm_pool.h"
#include "engine/device/cuda/kernels/table.h"

namespace paceline::cuda {

template <typename T>
using GradientSums = ChannelSums<NormPoolGradientSums<T>>;

void add_norm_pool(KernelTable& table) {
  add_for_planes<NormPool, GradientSums, NormPoolGradient>(table);
}

}  // namespace paceline::cuda

#include "engine/device/cuda/kernels/channel_sums.h"
#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/probe.h"
#include "engine/device/cuda/kernels/table.h"

namespace paceline::cuda {

template <typename T>
using BiasGradients = ChannelSums<BiasGradient<T>>;
template <typename T>
using Copy = Convert<T, T>;

void add_elementwise(KernelTable& table) {
  add_for_planes<CastInput, FoldInput, AddBias, ReluBackward, Dropout, DropoutBackward, Copy,
                 BiasGradients, Randomize, Compare>(table);
  table.add<Convert<float, Bf16>, Convert<Bf16, float>, Convert<float, Half>, Convert<Half, float>,
            MultiplyAdd>();
}

}  // namespace paceline::cuda

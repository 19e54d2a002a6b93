#include "engine/device/cuda/kernels/attention.h"
#include "engine/device/cuda/kernels/table.h"

namespace paceline::cuda {

template <int Width, typename... T>
void add_width(KernelTable& table) {
  table.add<Attention<T, Width>..., AttentionQueryGradient<T, Width>...,
            AttentionKeyGradient<T, Width, false>..., AttentionKeyGradient<T, Width, true>...>();
}

void add_attention(KernelTable& table) {
  add_width<32, float, Bf16>(table);
  add_width<64, float, Bf16>(table);
}

}  // namespace paceline::cuda

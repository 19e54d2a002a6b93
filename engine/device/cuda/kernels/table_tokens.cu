#include "engine/device/cuda/kernels/layer_norm.h"
#include "engine/device/cuda/kernels/loss.h"
#include "engine/device/cuda/kernels/table.h"
#include "engine/device/cuda/kernels/tokens.h"

namespace paceline::cuda {

template <typename T>
using ParameterGradients = ChannelSums<LayerNormParameters<T>>;

void add_tokens(KernelTable& table) {
  add_for_tokens<Embed, PositionGradient, TokenGradient, LayerNorm, LayerNormKept,
                 LayerNormGradient, ParameterGradients, Gelu, BiasGelu, TokenLoss, TokenLossKept>(
      table);
  table.add<LayerNormOnePass<Bf16>, ChannelSums<BlockSums>, TokenOrder, TokenCounts, TokenPlaces,
            TokenSort, SoftmaxLoss, SoftmaxLossGradient>();
}

}  // namespace paceline::cuda

// Every kernel that a runtime can launch.
#pragma once

#include "engine/device/cuda/kernels/attention.h"
#include "engine/device/cuda/kernels/channel_sums.h"
#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/loss.h"
#include "engine/device/cuda/kernels/norm.h"
#include "engine/device/cuda/kernels/norm_pool.h"
#include "engine/device/cuda/kernels/pool.h"
#include "engine/device/cuda/kernels/probe.h"
#include "engine/device/cuda/kernels/tokens.h"
#include "engine/device/cuda/kernels/update.h"

namespace paceline::cuda {

// Calls Visit::visit<Kernel>() for those that exist for each element type of planes.
template <typename T, typename Visit>
void for_each_kernel_in(Visit& visit) {
  visit.template visit<CastInput<T>>();
  visit.template visit<AddBias<T>>();
  visit.template visit<ReluBackward<T>>();
  visit.template visit<Dropout<T>>();
  visit.template visit<DropoutBackward<T>>();
  visit.template visit<MaxPool<T>>();
  visit.template visit<MaxPoolBackward<T>>();
  visit.template visit<AveragePool<T>>();
  visit.template visit<AveragePoolBackward<T>>();
  visit.template visit<ChannelSums<BiasGradient<T>>>();
  visit.template visit<ChannelSums<NormStatistics<T>>>();
  visit.template visit<ChannelSums<NormGradientSums<T, false>>>();
  visit.template visit<ChannelSums<NormGradientSums<T, true>>>();
  visit.template visit<NormApply<T>>();
  visit.template visit<NormGradient<T, false>>();
  visit.template visit<NormGradient<T, true>>();
  visit.template visit<NormPool<T>>();
  visit.template visit<ChannelSums<NormPoolGradientSums<T>>>();
  visit.template visit<NormPoolGradient<T>>();
  visit.template visit<WidenGradients<T>>();
  visit.template visit<Update<T>>();
  visit.template visit<FitRows<T, float>>();
  visit.template visit<Convert<T, T>>();
  visit.template visit<Randomize<T>>();
  visit.template visit<Compare<T>>();
}

// Networks of tokens: not in fp16.
template <typename T, int Width, typename Visit>
void for_each_attention_kernel(Visit& visit) {
  visit.template visit<Attention<T, Width>>();
  visit.template visit<AttentionQueryGradient<T, Width>>();
  visit.template visit<AttentionKeyGradient<T, Width, false>>();
  visit.template visit<AttentionKeyGradient<T, Width, true>>();
}
template <typename T, typename Visit>
void for_each_token_kernel(Visit& visit) {
  visit.template visit<Embed<T>>();
  visit.template visit<PositionGradient<T>>();
  visit.template visit<TokenGradient<T>>();
  visit.template visit<LayerNorm<T>>();
  visit.template visit<LayerNormGradient<T>>();
  visit.template visit<ChannelSums<LayerNormParameters<T>>>();
  visit.template visit<Gelu<T>>();
  visit.template visit<BiasGelu<T>>();
  visit.template visit<TokenLoss<T>>();
  for_each_attention_kernel<T, 32>(visit);
  for_each_attention_kernel<T, 64>(visit);
}

template <typename Visit>
void for_each_kernel(Visit visit) {
  for_each_kernel_in<float>(visit);
  for_each_kernel_in<Bf16>(visit);
  for_each_kernel_in<Half>(visit);
  for_each_token_kernel<float>(visit);
  for_each_token_kernel<Bf16>(visit);
  visit.template visit<TokenOrder>();
  visit.template visit<Convert<float, Bf16>>();
  visit.template visit<Convert<Bf16, float>>();
  visit.template visit<Convert<float, Half>>();
  visit.template visit<Convert<Half, float>>();
  visit.template visit<FitRows<float, Bf16>>();
  visit.template visit<FitRows<float, Half>>();
  visit.template visit<NormFixed>();
  visit.template visit<SoftmaxLoss>();
  visit.template visit<SoftmaxLossGradient>();
  visit.template visit<SetRule>();
  visit.template visit<FindInfinite>();
  visit.template visit<SquareSums>();
  visit.template visit<FindClipFactor>();
  visit.template visit<AdjustScale>();
  visit.template visit<MultiplyAdd>();
}

}  // namespace paceline::cuda

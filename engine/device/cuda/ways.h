// Work of our kernels that can be done in several ways, of which a card's times choose one.
#pragma once

#include "engine/device/cuda/kernels/channel_sums.h"
#include "engine/device/cuda/kernels/layer_norm.h"
#include "engine/device/cuda/kernels/pool.h"
#include "engine/device/cuda/kernels/tokens.h"
#include "engine/device/cuda/kernels/update.h"
#include "engine/device/cuda/products.h"
#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// What sums over rows need besides: partial sums, one counter for each tile, and sums of blocks.
struct SumMemory {
  float* partials = nullptr;
  unsigned* counters = nullptr;  // zero before and after
  float* of_blocks = nullptr;
};

// With at most `blocks` a multiprocessor.
inline ChannelTiling make_tiling(const Runtime& runtime, std::size_t rows, int channels,
                                 unsigned blocks) {
  ChannelTiling t{rows, channels, 1};
  const unsigned wanted = std::max(1U, blocks * runtime.multiprocessors() / t.tiles());
  const std::size_t useful = (rows + t.rows_at_once() - 1) / t.rows_at_once();
  t.splits = static_cast<unsigned>(std::clamp<std::size_t>(useful, 1, wanted));
  return t;
}

constexpr unsigned kElementThreads = 256;  // of a block of an element-wise kernel
// A layer norm's row is short: the threads of one warp hardly wait for each other.
constexpr unsigned kNormThreads = 32;

// One thread per item, as far as the device can hold them.
template <typename Kernel>
void launch_over(Runtime& runtime, const Kernel& kernel, std::size_t items, Stream stream) {
  constexpr std::size_t kBlocksEach = 16;  // blocks per multiprocessor, in sequence
  const std::size_t most = kBlocksEach * runtime.multiprocessors();
  const std::size_t blocks = std::min((items + kElementThreads - 1) / kElementThreads, most);
  runtime.launch(kernel, {static_cast<unsigned>(blocks), kElementThreads, 0}, stream);
}

template <typename Row>
void launch_sums(Runtime& runtime, const Row& row, const ChannelTiling& t, const SumMemory& memory,
                 Stream stream) {
  runtime.launch(ChannelSums<Row>{t, memory.partials, memory.counters, row},
                 {t.splits * t.tiles(), ChannelTiling::kThreads, ChannelSums<Row>::shared_bytes()},
                 stream);
}

template <typename T>
void run_layer_norm(Runtime& runtime, std::size_t way, const LayerNorm<T>& work, std::size_t rows,
                    Stream stream);

// The gradients of a layer norm. dx null: only those of its parameters.
template <typename T>
struct LayerNormWork {
  const T *x, *dy;
  T* dx;
  const float *gamma, *sums;
  float *dgamma, *dbeta;
  std::size_t rows;
  int channels;
  bool adds;
};

template <typename T>
void run_layer_norm_gradient(Runtime& runtime, std::size_t way, const LayerNormWork<T>& work,
                             const SumMemory& memory, Stream stream);
// In one pass, by any of its ways.
unsigned most_layer_norm_blocks(const Runtime& runtime);

template <typename T>
void run_token_loss(Runtime& runtime, std::size_t way, const TokenLoss<T>& work, std::size_t rows,
                    Stream stream);

template <typename T>
void run_pool_gradient(Runtime& runtime, std::size_t way, const AveragePoolBackward<T>& work,
                       Stream stream);

template <typename T>
void run_update(Runtime& runtime, std::size_t way, const UpdateWork<T>& work, Stream stream);

// Which way is the fastest.

std::size_t choose_layer_norm(Runtime& runtime, Products& products, std::size_t rows, int channels,
                              Math math);
std::size_t choose_layer_norm_gradient(Runtime& runtime, Products& products, std::size_t rows,
                                       int channels, Math math, bool adds);
std::size_t choose_pool_gradient(Runtime& runtime, Products& products,
                                 const AveragePoolBackward<float>& sizes, Math math);
std::size_t choose_token_loss(Runtime& runtime, Products& products, std::size_t rows, int classes,
                              Math math);

std::size_t choose_update(Runtime& runtime, Products& products, Optimizer optimizer,
                          std::size_t elements, Math math);

// Whether `inside`, a product with left_gradient in bf16, is faster than `plain` and a kernel of
// ours that sums the rows of dy.
bool choose_bias_inside(Runtime& runtime, Products& products, const ConvShape& shape,
                        ConvPlan& plain, ConvPlan& inside);

// Blocks a multiprocessor for the sums of a batch norm.
constexpr unsigned kMostNormBlocks = 4;
unsigned choose_statistics_blocks(Runtime& runtime, Products& products, std::size_t rows,
                                  int channels, Math math);
unsigned choose_gradient_blocks(Runtime& runtime, Products& products, std::size_t rows,
                                int channels, Math math, bool has_branch, bool masks);

}  // namespace paceline::cuda

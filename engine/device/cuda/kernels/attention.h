// Causal attention that keeps no matrix of places by places: a thread owns a query (or a key), and
// the block passes over the keys (or queries) in tiles of shared memory.
//
// Rows hold queries, keys and values of all heads, `heads` x Width elements each. `sums` are the
// logarithms of sums of exponentials, by head and row. On CUDA cores, in fp32.
#pragma once

#include <cmath>

#include "engine/device/cuda/kernels/context.h"

namespace paceline::cuda {

struct AttentionShape {
  std::size_t samples, places, heads;
  static constexpr unsigned kThreads = 128;

  unsigned tiles() const { return static_cast<unsigned>((places + kThreads - 1) / kThreads); }
  unsigned blocks() const { return static_cast<unsigned>(samples * heads) * tiles(); }
};

// What a block works on: one head of one sample, and kThreads of its rows.
template <int Width>
struct AttentionBlock {
  static constexpr int kTile = 32;  // rows in shared memory at a time
  std::size_t sample, head, first, mine;
  std::size_t places, stride, out_stride, heads;
  bool inside;  // this thread's row exists

  template <typename Context>
  PACELINE_KERNEL AttentionBlock(const Context& c, const AttentionShape& shape)
      : places(shape.places),
        stride(3 * shape.heads * Width),
        out_stride(shape.heads * Width),
        heads(shape.heads) {
    const std::size_t tiles = (places + AttentionShape::kThreads - 1) / AttentionShape::kThreads;
    const std::size_t unit = c.block() / tiles;
    sample = unit / heads;
    head = unit % heads;
    first = c.block() % tiles * AttentionShape::kThreads;
    mine = first + c.thread();
    inside = mine < places;
  }
  static constexpr std::size_t shared_bytes() { return (2 * Width + 2) * kTile * sizeof(float); }

  // Of a row's query (0), key (1) or value (2); of its output; of its sum.
  PACELINE_KERNEL std::size_t in(std::size_t row, int part) const {
    return (sample * places + row) * stride + part * out_stride + head * Width;
  }
  PACELINE_KERNEL std::size_t out(std::size_t row) const {
    return (sample * places + row) * out_stride + head * Width;
  }
  PACELINE_KERNEL std::size_t sum(std::size_t row) const {
    return (sample * heads + head) * places + row;
  }

  // kTile rows to shared memory; zero behind the last one. `at(row)` is where a row stands.
  template <typename Context, typename T, typename At>
  PACELINE_KERNEL void load_tile(const Context& c, const T* from, std::size_t begin, float* to,
                                 At at) const {
    for (unsigned e = c.thread(); e < kTile * Width; e += c.threads()) {
      const std::size_t row = begin + e / Width;
      to[e] = row < places ? to_float(from[at(row) + e % Width]) : 0;
    }
  }
  template <typename T>
  PACELINE_KERNEL void load_mine(const T* from, float (&to)[Width]) const {
    PACELINE_UNROLL
    for (int d = 0; d < Width; ++d) to[d] = inside ? to_float(from[d]) : 0;
  }
  template <typename T>
  PACELINE_KERNEL void store_mine(const float (&from)[Width], float factor, T* to,
                                  bool adds) const {
    if (!inside) return;
    PACELINE_UNROLL
    for (int d = 0; d < Width; ++d) {
      const float value = from[d] * factor;
      to[d] = from_float<T>(adds ? to_float(to[d]) + value : value);
    }
  }
};

template <int Width>
PACELINE_KERNEL inline float dot(const float (&a)[Width], const float* b) {
  float sum = 0;
  PACELINE_UNROLL
  for (int d = 0; d < Width; ++d) sum += a[d] * b[d];
  return sum;
}
template <int Width>
PACELINE_KERNEL inline void add_scaled(float factor, const float* x, float (&y)[Width]) {
  PACELINE_UNROLL
  for (int d = 0; d < Width; ++d) y[d] += factor * x[d];
}

template <typename T, int Width>
struct Attention {
  AttentionShape shape;
  const T* x;
  T* y;
  float* sums;
  float scale;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    using Block = AttentionBlock<Width>;
    const Block b(c, shape);
    float* keys = c.template shared<float>();
    float* values = keys + Block::kTile * Width;
    float q[Width], mixed[Width] = {}, largest = -HUGE_VALF, total = 0;
    b.load_mine(x + (b.inside ? b.in(b.mine, 0) : 0), q);
    const std::size_t end = b.first + AttentionShape::kThreads;
    for (std::size_t begin = 0; begin < b.places && begin < end; begin += Block::kTile) {
      b.load_tile(c, x, begin, keys, [&](std::size_t row) { return b.in(row, 1); });
      b.load_tile(c, x, begin, values, [&](std::size_t row) { return b.in(row, 2); });
      c.sync();
      for (int j = 0; j < Block::kTile && begin + j <= b.mine; ++j) {
        const float score = scale * dot(q, keys + j * Width);
        if (score > largest) {
          const float factor = expf(largest - score);
          total *= factor;
          PACELINE_UNROLL
          for (int d = 0; d < Width; ++d) mixed[d] *= factor;
          largest = score;
        }
        const float p = expf(score - largest);
        total += p;
        add_scaled(p, values + j * Width, mixed);
      }
      c.sync();
    }
    b.store_mine(mixed, 1 / total, y + (b.inside ? b.out(b.mine) : 0), false);
    if (b.inside) sums[b.sum(b.mine)] = largest + logf(total);
  }
};

// dq_i = sum_j s_ij k_j with p_ij = exp(scale q_i k_j - sum_i) and s_ij = scale p_ij (dy_i v_j -
// dy_i y_i). Writes dy_i y_i, too.
template <typename T, int Width>
struct AttentionQueryGradient {
  AttentionShape shape;
  const T *x, *y, *dy;
  T* dx;
  const float* sums;
  float* products;  // dy y, by head and row
  float scale;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    using Block = AttentionBlock<Width>;
    const Block b(c, shape);
    float* keys = c.template shared<float>();
    float* values = keys + Block::kTile * Width;
    float q[Width], g[Width], dq[Width] = {}, product = 0;
    const std::size_t out = b.inside ? b.out(b.mine) : 0;
    b.load_mine(x + (b.inside ? b.in(b.mine, 0) : 0), q);
    b.load_mine(dy + out, g);
    for (int d = 0; b.inside && d < Width; ++d) product += g[d] * to_float(y[out + d]);
    const float sum = b.inside ? sums[b.sum(b.mine)] : 0;
    const std::size_t end = b.first + AttentionShape::kThreads;
    for (std::size_t begin = 0; begin < b.places && begin < end; begin += Block::kTile) {
      b.load_tile(c, x, begin, keys, [&](std::size_t row) { return b.in(row, 1); });
      b.load_tile(c, x, begin, values, [&](std::size_t row) { return b.in(row, 2); });
      c.sync();
      for (int j = 0; j < Block::kTile && begin + j <= b.mine; ++j) {
        const float p = expf(scale * dot(q, keys + j * Width) - sum);
        add_scaled(scale * p * (dot(g, values + j * Width) - product), keys + j * Width, dq);
      }
      c.sync();
    }
    b.store_mine(dq, 1, dx + (b.inside ? b.in(b.mine, 0) : 0), adds);
    if (b.inside) products[b.sum(b.mine)] = product;
  }
};

// The gradient of the keys, dk_j = sum_i s_ij q_i, or of the values, dv_j = sum_i p_ij dy_i.
template <typename T, int Width, bool kOfValues>
struct AttentionKeyGradient {
  AttentionShape shape;
  const T *x, *dy;
  T* dx;
  const float *sums, *products;
  float scale;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    using Block = AttentionBlock<Width>;
    const Block b(c, shape);
    float* queries = c.template shared<float>();
    float* gradients = queries + Block::kTile * Width;
    float* row_sums = gradients + Block::kTile * Width;
    float* row_products = row_sums + Block::kTile;
    float k[Width], v[Width], result[Width] = {};
    b.load_mine(x + (b.inside ? b.in(b.mine, 1) : 0), k);
    if (!kOfValues) b.load_mine(x + (b.inside ? b.in(b.mine, 2) : 0), v);
    for (std::size_t begin = b.first; begin < b.places; begin += Block::kTile) {
      b.load_tile(c, x, begin, queries, [&](std::size_t row) { return b.in(row, 0); });
      b.load_tile(c, dy, begin, gradients, [&](std::size_t row) { return b.out(row); });
      if (c.thread() < Block::kTile && begin + c.thread() < b.places) {
        row_sums[c.thread()] = sums[b.sum(begin + c.thread())];
        row_products[c.thread()] = products[b.sum(begin + c.thread())];
      }
      c.sync();
      for (int i = 0; i < Block::kTile && begin + i < b.places; ++i) {
        if (begin + i < b.mine) continue;
        const float p = expf(scale * dot(k, queries + i * Width) - row_sums[i]);
        if constexpr (kOfValues) {
          add_scaled(p, gradients + i * Width, result);
        } else {
          const float slope = scale * p * (dot(v, gradients + i * Width) - row_products[i]);
          add_scaled(slope, queries + i * Width, result);
        }
      }
      c.sync();
    }
    b.store_mine(result, 1, dx + (b.inside ? b.in(b.mine, kOfValues ? 2 : 1) : 0), adds);
  }
};

}  // namespace paceline::cuda

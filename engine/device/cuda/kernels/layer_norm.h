// Layer norm and its gradients. Rows are places of samples.
#pragma once

#include <cmath>

#include "engine/device/cuda/kernels/channel_sums.h"
#include "engine/device/cuda/kernels/loss.h"

namespace paceline::cuda {

// Of kernels in which a warp has a row, and a thread keeps vectors of it in registers.
struct WarpRows {
  static constexpr unsigned kLanes = 32;
  static constexpr int kVectors = 3;  // of a thread
  static constexpr int kMostChannels = kVectors * static_cast<int>(kLanes) * kVector;

  // body(k, first channel, channels) for the thread's vectors.
  template <typename Context, typename Body>
  PACELINE_KERNEL static void over_mine(const Context& c, int channels, Body body) {
    const int lane = static_cast<int>(c.thread() % kLanes);
    PACELINE_UNROLL
    for (int k = 0; k < kVectors; ++k) {
      const int channel = (k * static_cast<int>(kLanes) + lane) * kVector;
      const int left = channels - channel;
      if (left > 0) body(k, channel, left < kVector ? left : kVector);
    }
  }
  // `shared` has a float for each thread.
  template <typename Context>
  PACELINE_KERNEL static float total_of_row(Context& c, float mine, float* shared) {
    const unsigned lane = c.thread() % kLanes;
    shared[c.thread()] = mine;
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      c.sync();
      if (lane < half) shared[c.thread()] += shared[c.thread() + half];
    }
    c.sync();
    const float total = shared[c.thread() - lane];
    c.sync();
    return total;
  }
  template <typename T>
  PACELINE_KERNEL static Packed<T> fetch(const T* from, int channels, int count) {
    return channels % kVector == 0 ? packed_at(from) : packed_some(from, count);
  }
};

// One block a row. `sums`: mean and 1 / sqrt(variance + epsilon).
template <typename T>
struct LayerNorm {
  const T* x;
  T* y;
  const float *gamma, *beta;
  float* sums;
  int channels;
  float epsilon;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    float* shared = c.template shared<float>();
    const T* from = x + static_cast<std::size_t>(c.block()) * channels;
    T* to = y + static_cast<std::size_t>(c.block()) * channels;
    float sum = 0, squares = 0, v[kVector], weight[kVector], offset[kVector];
    over_row(c, channels, [&](int channel, int count) {
      load_row(from + channel, channels, count, v);
      for (int i = 0; i < kVector; ++i) sum += v[i];
    });
    const float mean = block_total(c, sum, shared) / static_cast<float>(channels);
    over_row(c, channels, [&](int channel, int count) {
      load_row(from + channel, channels, count, v);
      for (int i = 0; i < kVector; ++i) {
        if (i < count) squares += (v[i] - mean) * (v[i] - mean);
      }
    });
    const float variance = block_total(c, squares, shared) / static_cast<float>(channels);
    const float scale = 1 / sqrtf(variance + epsilon);
    over_row(c, channels, [&](int channel, int count) {
      load_row(from + channel, channels, count, v);
      load_row(gamma + channel, channels, count, weight);
      load_row(beta + channel, channels, count, offset);
      for (int i = 0; i < kVector; ++i) v[i] = (v[i] - mean) * scale * weight[i] + offset[i];
      store_row(v, channels, count, to + channel);
    });
    if (c.thread() != 0) return;
    sums[2 * c.block()] = mean;
    sums[2 * c.block() + 1] = scale;
  }
};

// The same, reading x once, with a row for each warp of a block.
template <typename T>
struct LayerNormKept : WarpRows {
  LayerNorm<T> norm;
  std::size_t rows;

  LayerNormKept(const LayerNorm<T>& same, std::size_t count) : norm(same), rows(count) {}

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    float* shared = c.template shared<float>();
    const int channels = norm.channels;
    const std::size_t row = c.block() * std::size_t{c.threads() / kLanes} + c.thread() / kLanes;
    const bool there = row < rows;
    const std::size_t first = row * channels;
    Packed<T> mine[kVectors] = {};
    float sum = 0, squares = 0, v[kVector], weight[kVector], offset[kVector];
    over_mine(c, channels, [&](int k, int channel, int count) {
      if (there) mine[k] = fetch(norm.x + first + channel, channels, count);
      unpack(mine[k], v);
      for (int i = 0; i < kVector; ++i) sum += v[i];
    });
    const float mean = total_of_row(c, sum, shared) / static_cast<float>(channels);
    over_mine(c, channels, [&](int k, int, int count) {
      unpack(mine[k], v);
      for (int i = 0; i < kVector; ++i) {
        if (i < count) squares += (v[i] - mean) * (v[i] - mean);
      }
    });
    const float variance = total_of_row(c, squares, shared) / static_cast<float>(channels);
    const float scale = 1 / sqrtf(variance + norm.epsilon);
    if (!there) return;
    over_mine(c, channels, [&](int k, int channel, int count) {
      unpack(mine[k], v);
      load_row(norm.gamma + channel, channels, count, weight);
      load_row(norm.beta + channel, channels, count, offset);
      for (int i = 0; i < kVector; ++i) v[i] = (v[i] - mean) * scale * weight[i] + offset[i];
      store_row(v, channels, count, norm.y + first + channel);
    });
    if (c.thread() % kLanes != 0) return;
    norm.sums[2 * row] = mean;
    norm.sums[2 * row + 1] = scale;
  }
};

template <typename T>
struct LayerNormGradient {
  const T *x, *dy;
  T* dx;
  const float *gamma, *sums;
  int channels;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    float* shared = c.template shared<float>();
    const std::size_t first = static_cast<std::size_t>(c.block()) * channels;
    const float mean = sums[2 * c.block()], scale = sums[2 * c.block() + 1];
    float sum = 0, projection = 0, normal[kVector], g[kVector], before[kVector];
    // The normalized input, and the gradient times gamma.
    const auto fetch = [&](int channel, int count) {
      float weight[kVector];
      load_row(x + first + channel, channels, count, normal);
      load_row(dy + first + channel, channels, count, g);
      load_row(gamma + channel, channels, count, weight);
      for (int i = 0; i < kVector; ++i) {
        normal[i] = (normal[i] - mean) * scale;
        g[i] *= weight[i];
      }
    };
    over_row(c, channels, [&](int channel, int count) {
      fetch(channel, count);
      for (int i = 0; i < kVector; ++i) {
        sum += g[i];
        projection += g[i] * normal[i];
      }
    });
    sum = block_total(c, sum, shared) / static_cast<float>(channels);
    projection = block_total(c, projection, shared) / static_cast<float>(channels);
    over_row(c, channels, [&](int channel, int count) {
      T* to = dx + first + channel;
      fetch(channel, count);
      if (adds) load_row(static_cast<const T*>(to), channels, count, before);
      for (int i = 0; i < kVector; ++i) {
        g[i] = scale * (g[i] - sum - normal[i] * projection);
        if (adds) g[i] += before[i];
      }
      store_row(g, channels, count, to);
    });
  }
};

// The gradients of gamma and beta.
template <typename T>
struct LayerNormParameters {
  static constexpr int kSums = 2, kBlocks = 3;
  const T *x, *dy;
  const float* sums;
  float *dgamma, *dbeta;
  int channels;

  static constexpr int kAhead = 2;
  struct Start {};
  struct Fetched {
    Packed<T> x, dy;
    float mean, scale;
  };
  PACELINE_KERNEL Start start(int, int) const { return {}; }
  template <bool kWhole>
  PACELINE_KERNEL Fetched fetch(std::size_t row, int channel, int count) const {
    const std::size_t at = row * channels + channel;
    return {packed_row<kWhole>(x + at, count), packed_row<kWhole>(dy + at, count), sums[2 * row],
            sums[2 * row + 1]};
  }
  PACELINE_KERNEL void add(const Fetched& fetched, const Start&, float (&to)[2][kVector]) const {
    float value[kVector], g[kVector];
    unpack(fetched.x, value);
    unpack(fetched.dy, g);
    for (int i = 0; i < kVector; ++i) {
      to[0][i] += g[i] * (value[i] - fetched.mean) * fetched.scale;
      to[1][i] += g[i];
    }
  }
  PACELINE_KERNEL void finish(int channel, const double (&totals)[2]) const {
    dgamma[channel] = static_cast<float>(totals[0]);
    dbeta[channel] = static_cast<float>(totals[1]);
  }
};

// Both in one pass over x and dy, by few blocks, of which each has every n-th kRows rows. A warp
// has a row, and a thread the same channels of all its rows, whose gradients of gamma and beta it
// adds up. `of_blocks` gets the sums of each block: of gamma, then of beta; BlockSums adds them.
template <typename T>
struct LayerNormOnePass {
  using Rows = WarpRows;
  static constexpr unsigned kLanes = Rows::kLanes, kRows = 8, kThreads = kRows * kLanes;
  static constexpr int kVectors = Rows::kVectors;
  const T *x, *dy;
  T* dx;
  const float *gamma, *sums;
  float* of_blocks;
  std::size_t rows;
  int channels;
  bool adds;

  static constexpr std::size_t shared_bytes() { return kThreads * kVector * sizeof(float); }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    float* shared = c.template shared<float>();
    const unsigned in_block = c.thread() / kLanes;
    float dgamma[kVectors][kVector] = {}, dbeta[kVectors][kVector] = {};
    for (std::size_t first = c.block() * std::size_t{kRows}; first < rows;
         first += c.blocks() * std::size_t{kRows}) {
      const std::size_t row = first + in_block;
      const bool there = row < rows;
      const float mean = there ? sums[2 * row] : 0, scale = there ? sums[2 * row + 1] : 0;
      Packed<T> of_x[kVectors] = {}, of_dy[kVectors] = {};
      Rows::over_mine(c, channels, [&](int k, int channel, int count) {
        if (!there) return;
        of_x[k] = Rows::fetch(x + row * channels + channel, channels, count);
        of_dy[k] = Rows::fetch(dy + row * channels + channel, channels, count);
      });
      float sum = 0, projection = 0, normal[kVector], g[kVector], weight[kVector];
      Rows::over_mine(c, channels, [&](int k, int channel, int count) {
        unpack(of_x[k], normal);
        unpack(of_dy[k], g);
        load_row(gamma + channel, channels, count, weight);
        for (int i = 0; i < kVector; ++i) {
          normal[i] = (normal[i] - mean) * scale;
          dgamma[k][i] += g[i] * normal[i];
          dbeta[k][i] += g[i];
          sum += g[i] * weight[i];
          projection += g[i] * weight[i] * normal[i];
        }
      });
      sum = Rows::total_of_row(c, sum, shared) / static_cast<float>(channels);
      projection = Rows::total_of_row(c, projection, shared) / static_cast<float>(channels);
      Rows::over_mine(c, channels, [&](int k, int channel, int count) {
        if (!there) return;
        T* to = dx + row * channels + channel;
        float before[kVector] = {};
        if (adds) load_row(static_cast<const T*>(to), channels, count, before);
        unpack(of_x[k], normal);
        unpack(of_dy[k], g);
        load_row(gamma + channel, channels, count, weight);
        for (int i = 0; i < kVector; ++i) {
          normal[i] = (normal[i] - mean) * scale;
          g[i] = before[i] + scale * (g[i] * weight[i] - sum - normal[i] * projection);
        }
        store_row(g, channels, count, to);
      });
    }
    PACELINE_UNROLL
    for (int k = 0; k < kVectors; ++k) {
      write_sums(c, k, 0, dgamma[k], shared);
      write_sums(c, k, 1, dbeta[k], shared);
    }
  }

 private:
  template <typename Context>
  PACELINE_KERNEL void write_sums(Context& c, int k, int which, const float (&mine)[kVector],
                                  float* shared) const {
    static_assert(kThreads == kLanes * kVector, "a thread a channel");
    for (int i = 0; i < kVector; ++i) shared[c.thread() * kVector + i] = mine[i];
    c.sync();
    float sum = 0;
    for (unsigned r = 0; r < kRows; ++r) sum += shared[r * kLanes * kVector + c.thread()];
    const int channel = k * static_cast<int>(kThreads) + static_cast<int>(c.thread());
    if (channel < channels) {
      of_blocks[(static_cast<std::size_t>(which) * c.blocks() + c.block()) * channels + channel] =
          sum;
    }
    c.sync();
  }
};

struct BlockSums {
  static constexpr int kSums = 2, kBlocks = 1;
  const float* of_blocks;
  std::size_t blocks;
  float *first, *second;
  int channels;

  static constexpr int kAhead = 2;
  struct Start {};
  struct Fetched {
    Packed<float> first, second;
  };
  PACELINE_KERNEL Start start(int, int) const { return {}; }
  template <bool kWhole>
  PACELINE_KERNEL Fetched fetch(std::size_t block, int channel, int count) const {
    const float* from = of_blocks + block * channels + channel;
    return {packed_row<kWhole>(from, count), packed_row<kWhole>(from + blocks * channels, count)};
  }
  PACELINE_KERNEL void add(const Fetched& fetched, const Start&, float (&to)[2][kVector]) const {
    for (int i = 0; i < kVector; ++i) {
      to[0][i] += fetched.first.values[i];
      to[1][i] += fetched.second.values[i];
    }
  }
  PACELINE_KERNEL void finish(int channel, const double (&totals)[2]) const {
    first[channel] = static_cast<float>(totals[0]);
    second[channel] = static_cast<float>(totals[1]);
  }
};

}  // namespace paceline::cuda

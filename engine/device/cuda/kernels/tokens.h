// Networks of tokens: tables, layer norm, GELU and the loss of each token. Rows are places of
// samples.
#pragma once

#include <cmath>

#include "engine/device/cuda/kernels/channel_sums.h"
#include "engine/device/cuda/kernels/loss.h"

namespace paceline::cuda {

// Samples of context + 1 tokens of 16 bits; see token_sample().
struct TokenRows {
  const std::uint16_t* tokens;
  std::size_t rows;  // of all samples
  std::size_t context;

  PACELINE_KERNEL unsigned at(std::size_t row) const { return tokens[row + row / context]; }
  PACELINE_KERNEL unsigned label(std::size_t row) const { return tokens[row + row / context + 1]; }
};

// y = tokens[token] + positions[place]; zero for missing samples.
template <typename T>
struct Embed {
  TokenRows batch;
  const float *tokens, *positions;
  T* y;
  std::size_t missing_rows, width;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, (batch.rows + missing_rows) * width, [&](std::size_t i) {
      const std::size_t row = i / width, channel = i % width;
      y[i] = from_float<T>(row < batch.rows ? tokens[batch.at(row) * width + channel] +
                                                  positions[row % batch.context * width + channel]
                                            : 0);
    });
  }
};

// The gradient of the places: the sum over samples.
template <typename T>
struct PositionGradient {
  const T* dy;
  float* gradient;
  std::size_t samples, elements;  // of a sample

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, elements, [&](std::size_t i) {
      float sum = 0;
      for (std::size_t n = 0; n < samples; ++n) sum += to_float(dy[n * elements + i]);
      gradient[i] = sum;
    });
  }
};

// Adds to the gradient of the tokens. The block of a token's first row adds all of its rows, in
// order; blocks of other rows do nothing.
template <typename T>
struct TokenGradient {
  TokenRows batch;
  const T* dy;
  float* gradient;
  std::size_t width;

  static constexpr std::size_t shared_bytes(unsigned threads) { return threads * sizeof(unsigned); }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    unsigned* same = c.template shared<unsigned>();
    for (std::size_t row = c.block(); row < batch.rows; row += c.blocks()) {
      const unsigned token = batch.at(row);
      bool earlier = false;
      for (std::size_t other = c.thread(); other < row; other += c.threads()) {
        earlier = earlier || batch.at(other) == token;
      }
      if (any(c, earlier, same)) continue;
      for (std::size_t first = row; first < batch.rows; first += c.threads()) {
        const std::size_t mine = first + c.thread();
        const bool matches = mine < batch.rows && batch.at(mine) == token;
        if (any(c, matches, same)) add_matches(c, token, first);
      }
    }
  }

 private:
  template <typename Context>
  PACELINE_KERNEL bool any(Context& c, bool mine, unsigned* shared) const {
    shared[c.thread()] = mine;
    for (unsigned half = c.threads() / 2; half > 0; half /= 2) {
      c.sync();
      if (c.thread() < half) shared[c.thread()] |= shared[c.thread() + half];
    }
    c.sync();
    const bool found = shared[0] != 0;
    c.sync();
    return found;
  }

  template <typename Context>
  PACELINE_KERNEL void add_matches(Context& c, unsigned token, std::size_t first) const {
    const std::size_t left = batch.rows - first;
    const std::size_t count = left < c.threads() ? left : c.threads();
    for (std::size_t r = first; r < first + count; ++r) {
      if (batch.at(r) != token) continue;
      for (std::size_t i = c.thread(); i < width; i += c.threads()) {
        gradient[token * width + i] += to_float(dy[r * width + i]);
      }
    }
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
    const int step = static_cast<int>(c.threads()), thread = static_cast<int>(c.thread());
    float sum = 0, squares = 0;
    for (int i = thread; i < channels; i += step) sum += to_float(from[i]);
    const float mean = block_total(c, sum, shared) / static_cast<float>(channels);
    for (int i = thread; i < channels; i += step) {
      const float d = to_float(from[i]) - mean;
      squares += d * d;
    }
    const float variance = block_total(c, squares, shared) / static_cast<float>(channels);
    const float scale = 1 / sqrtf(variance + epsilon);
    for (int i = thread; i < channels; i += step) {
      to[i] = from_float<T>((to_float(from[i]) - mean) * scale * gamma[i] + beta[i]);
    }
    if (thread != 0) return;
    sums[2 * c.block()] = mean;
    sums[2 * c.block() + 1] = scale;
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
    const int step = static_cast<int>(c.threads()), thread = static_cast<int>(c.thread());
    float sum = 0, projection = 0;
    for (int i = thread; i < channels; i += step) {
      const float weighted = to_float(dy[first + i]) * gamma[i];
      sum += weighted;
      projection += weighted * (to_float(x[first + i]) - mean) * scale;
    }
    sum = block_total(c, sum, shared) / static_cast<float>(channels);
    projection = block_total(c, projection, shared) / static_cast<float>(channels);
    for (int i = thread; i < channels; i += step) {
      const float normal = (to_float(x[first + i]) - mean) * scale;
      const float g = scale * (to_float(dy[first + i]) * gamma[i] - sum - normal * projection);
      dx[first + i] = from_float<T>(adds ? to_float(dx[first + i]) + g : g);
    }
  }
};

// The gradients of gamma and beta.
template <typename T>
struct LayerNormParameters {
  static constexpr int kSums = 2;
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

// tanh form: y = 0.5 x (1 + tanh(u)) = x s, s = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715
// x^3). With dy, dx = (dx +) dy (s + 2 x s (1 - s) du/dx).
template <typename T>
struct Gelu {
  const T *x, *dy;  // dy null: forward
  T* out;
  std::size_t count;
  bool adds = false;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    constexpr float kScale = 0.7978845608F, kCube = 0.044715F;
    over_vectors(c, count, [&](std::size_t first, int n) {
      float v[kVector], g[kVector], before[kVector];
      load_at(x, first, n, v);
      if (dy) load_at(dy, first, n, g);
      if (adds) load_at(static_cast<const T*>(out), first, n, before);
      for (int i = 0; i < kVector; ++i) {
        const float share = 1 / (1 + expf(-2 * kScale * (v[i] + kCube * v[i] * v[i] * v[i])));
        const float slope = kScale * (1 + 3 * kCube * v[i] * v[i]);
        v[i] = dy ? g[i] * (share + 2 * v[i] * share * (1 - share) * slope) : v[i] * share;
        if (adds) v[i] += before[i];
      }
      store_at(v, out, first, n);
    });
  }
};

// The losses of rows of logits, one block each, which become their gradient with respect to the
// mean loss in training; that of missing rows is zero.
template <typename T>
struct TokenLoss {
  T* logits;
  TokenRows batch;
  std::size_t first;  // row
  RowLosses losses;
  int classes;
  const float* loss_scale;  // on the device; null: 1
  float scale;              // 1 / tokens of the global batch
  bool trains;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    T* row = logits + static_cast<std::size_t>(c.block()) * classes;
    const int step = static_cast<int>(c.threads()), thread = static_cast<int>(c.thread());
    if (first + c.block() >= batch.rows) {
      for (int i = thread; i < classes; i += step) row[i] = from_float<T>(0);
      return;
    }
    float* shared = c.template shared<float>();
    const int label = static_cast<int>(batch.label(first + c.block()));
    const float own = to_float(row[label]);
    float largest = own, before = 0;
    for (int i = thread; i < classes; i += step) {
      const float value = to_float(row[i]);
      largest = value > largest ? value : largest;
      if (stands_before(value, i, own, label)) before += 1;
    }
    largest = block_largest(c, largest, shared);
    before = block_total(c, before, shared);
    float sum = 0;
    for (int i = thread; i < classes; i += step) sum += expf(to_float(row[i]) - largest);
    const float total = block_total(c, sum, shared);
    const float factor = trains ? (loss_scale ? *loss_scale * scale : scale) : 0;
    for (int i = thread; trains && i < classes; i += step) {
      const float p = expf(to_float(row[i]) - largest) / total;
      row[i] = from_float<T>((i == label ? p - 1 : p) * factor);
    }
    losses.add(c, c.block(), logf(total) + largest - own, own == own ? before : kTop,
               reinterpret_cast<int*>(shared));
  }
};

}  // namespace paceline::cuda

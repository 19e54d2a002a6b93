// Batch normalisation in two passes each way: sums over a channel, then one pass over the elements
// that also adds, applies ReLU and masks.
#pragma once

#include <cmath>

#include "engine/device/cuda/kernels/channel_sums.h"

namespace paceline::cuda {

// A normalisation's numbers, an element a channel.
struct NormState {
  float *mean, *inverse;                   // of x; 1 / sqrt(variance + epsilon)
  float *scale, *shift;                    // y = scale x + shift
  float *dy_factor, *x_factor, *constant;  // dx = dy_factor dy + x_factor x + constant
};

// Parameters and running averages. `bias` is that of a convolution before it, which is not added to
// x because normalising takes it away again; null: there is none.
struct NormParameters {
  const float *gamma, *beta, *bias;
  float *running_mean, *running_variance;
  float *gamma_gradient, *beta_gradient;
  float epsilon, keep;  // keep: share of a running average that stays in a step
};

PACELINE_KERNEL inline void set_scale(const NormState& state, const NormParameters& p, int channel,
                                      double mean, double variance) {
  const double inverse = 1 / sqrt(variance + static_cast<double>(p.epsilon));
  const double scale = static_cast<double>(p.gamma[channel]) * inverse;
  state.mean[channel] = static_cast<float>(mean);
  state.inverse[channel] = static_cast<float>(inverse);
  state.scale[channel] = static_cast<float>(scale);
  state.shift[channel] = static_cast<float>(static_cast<double>(p.beta[channel]) - scale * mean);
}

// Sums of x - pivot and its square, the pivot being x in the first row: what is left cancels
// little.
template <typename T>
struct NormStatistics {
  static constexpr int kSums = 2;
  const T* x;
  std::size_t rows;
  int channels;
  NormState state;
  NormParameters parameters;

  struct Start {
    float pivot[kVector];
  };
  PACELINE_KERNEL Start start(int channel, int count) const {
    Start start;
    load_row(x + channel, channels, count, start.pivot);
    return start;
  }
  PACELINE_KERNEL void add(std::size_t row, int channel, int count, const Start& start,
                           float (&sums)[2][kVector]) const {
    float v[kVector];
    load_row(x + row * channels + channel, channels, count, v);
    for (int i = 0; i < kVector; ++i) {
      const float d = v[i] - start.pivot[i];
      sums[0][i] += d;
      sums[1][i] += d * d;
    }
  }
  PACELINE_KERNEL void finish(int channel, const double (&totals)[2]) const {
    if (rows == 0) return set_scale(state, parameters, channel, 0, 1);
    const auto n = static_cast<double>(rows);
    const double shifted = totals[0] / n;
    const double spread = totals[1] / n - shifted * shifted;
    const double variance = spread > 0 ? spread : 0;
    const double mean = shifted + static_cast<double>(to_float(x[channel]));
    set_scale(state, parameters, channel, mean, variance);
    const double keep = static_cast<double>(parameters.keep);
    const double bias = parameters.bias ? static_cast<double>(parameters.bias[channel]) : 0;
    float& running_mean = parameters.running_mean[channel];
    float& running_variance = parameters.running_variance[channel];
    running_mean =
        static_cast<float>(keep * static_cast<double>(running_mean) + (1 - keep) * (mean + bias));
    running_variance =
        static_cast<float>(keep * static_cast<double>(running_variance) +
                           (1 - keep) * (rows > 1 ? variance * n / (n - 1) : variance));
  }
};

// With the running averages.
struct NormFixed {
  int channels;
  NormState state;
  NormParameters parameters;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, static_cast<std::size_t>(channels), [&](std::size_t i) {
      const int channel = static_cast<int>(i);
      const double bias = parameters.bias ? static_cast<double>(parameters.bias[channel]) : 0;
      set_scale(state, parameters, channel,
                static_cast<double>(parameters.running_mean[channel]) - bias,
                static_cast<double>(parameters.running_variance[channel]));
    });
  }
};

// y = scale x + shift (+ skip, or + skip normalised by `branch`), then ReLU, of which `signs` keeps
// a bit an element: set where the element passes.
template <typename T>
struct NormApply {
  const T *x, *skip;
  T* y;
  std::uint8_t* signs;
  std::size_t count;
  int channels;
  NormState state, branch;  // branch.scale null: the skip is added as it is
  bool relu;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    float scale[kVector], shift[kVector], scale2[kVector] = {}, shift2[kVector] = {};
    over_channels(c, count, channels, [&](std::size_t first, int n, int channel, bool fresh) {
      if (fresh) {
        load_channels(state.scale, channel, channels, scale);
        load_channels(state.shift, channel, channels, shift);
        if (branch.scale) {
          load_channels(branch.scale, channel, channels, scale2);
          load_channels(branch.shift, channel, channels, shift2);
        }
      }
      float v[kVector], other[kVector] = {};
      load_at(x, first, n, v);
      if (skip) load_at(skip, first, n, other);
      unsigned passes = 0;
      for (int i = 0; i < kVector; ++i) {
        v[i] = v[i] * scale[i] + shift[i];
        if (skip) v[i] += branch.scale ? other[i] * scale2[i] + shift2[i] : other[i];
        if (!relu) continue;
        if (v[i] > 0) {
          passes |= 1U << i;
        } else {
          v[i] = 0;
        }
      }
      store_at(v, y, first, n);
      if (relu) signs[first / kVector] = static_cast<std::uint8_t>(passes);
    });
  }
};

PACELINE_KERNEL inline bool passes(const std::uint8_t* signs, std::size_t element) {
  return signs[element / 8] >> (element % 8) & 1;
}

// dy where ReLU let it pass.
template <typename T>
PACELINE_KERNEL inline void load_passed(const T* dy, const std::uint8_t* signs, std::size_t first,
                                        int count, bool whole, float (&to)[kVector]) {
  if (whole) {
    load(dy + first, to);
  } else {
    load_some(dy + first, count, to);
  }
  if (!signs) return;
  if (first % kVector == 0) {
    const unsigned mask = signs[first / kVector];
    for (int i = 0; i < kVector; ++i) to[i] = mask >> i & 1 ? to[i] : 0;
  } else {
    for (int i = 0; i < count; ++i)
      to[i] = passes(signs, first + static_cast<std::size_t>(i)) ? to[i] : 0;
  }
}

// Sums of dz and dz (x - mean), and dz (x2 - mean2) of a normalised branch; dz = dy where it
// passed.
template <typename T>
struct NormGradientSums {
  static constexpr int kSums = 3;
  const T *x, *x2, *dy;
  const std::uint8_t* signs;  // null: all pass
  std::size_t rows;
  int channels;
  NormState state, branch;
  NormParameters parameters, branch_parameters;

  struct Start {
    float mean[kVector], mean2[kVector];
  };
  PACELINE_KERNEL Start start(int channel, int count) const {
    Start start{};
    for (int i = 0; i < count; ++i) {
      start.mean[i] = state.mean[channel + i];
      if (x2) start.mean2[i] = branch.mean[channel + i];
    }
    return start;
  }
  PACELINE_KERNEL void add(std::size_t row, int channel, int count, const Start& start,
                           float (&sums)[3][kVector]) const {
    const std::size_t at = row * channels + channel;
    float v[kVector], dz[kVector];
    load_passed(dy, signs, at, count, channels % kVector == 0, dz);
    load_row(x + at, channels, count, v);
    for (int i = 0; i < kVector; ++i) {
      sums[0][i] += dz[i];
      sums[1][i] += dz[i] * (v[i] - start.mean[i]);
    }
    if (!x2) return;
    load_row(x2 + at, channels, count, v);
    for (int i = 0; i < kVector; ++i) sums[2][i] += dz[i] * (v[i] - start.mean2[i]);
  }
  PACELINE_KERNEL void finish(int channel, const double (&totals)[3]) const {
    set_factors(channel, totals[0], totals[1], state, parameters);
    if (x2) set_factors(channel, totals[0], totals[2], branch, branch_parameters);
  }

 private:
  // Ioffe and Szegedy, arXiv 1502.03167, section 3, gathered by dz, x and neither.
  PACELINE_KERNEL void set_factors(int channel, double sum, double sum_x, const NormState& s,
                                   const NormParameters& p) const {
    const double inverse = static_cast<double>(s.inverse[channel]);
    p.beta_gradient[channel] = static_cast<float>(sum);
    p.gamma_gradient[channel] = static_cast<float>(sum_x * inverse);
    if (rows == 0) return;
    const auto n = static_cast<double>(rows);
    const double scale = static_cast<double>(s.scale[channel]);
    const double x_factor = -scale * inverse * inverse * sum_x / n;
    s.dy_factor[channel] = static_cast<float>(scale);
    s.x_factor[channel] = static_cast<float>(x_factor);
    s.constant[channel] =
        static_cast<float>(-scale * sum / n - x_factor * static_cast<double>(s.mean[channel]));
  }
};

// Gradients of x (dx; null: nobody needs it) and of the skip (null likewise; may be dy itself),
// zero for `missing` elements after `count`.
template <typename T>
struct NormGradient {
  const T *x, *x2, *dy;
  const std::uint8_t* signs;
  T *dx, *skip;
  std::size_t count, missing;
  int channels;
  NormState state, branch;
  bool adds, adds_skip;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    Factors own{}, other{};
    over_channels(c, count + missing, channels,
                  [&](std::size_t first, int n, int channel, bool fresh) {
                    if (fresh) {
                      own.load(state, channel, channels);
                      if (x2) other.load(branch, channel, channels);
                    }
                    float dz[kVector], v[kVector];
                    load_passed(dy, signs, first, n, n == kVector, dz);
                    if (dx) {
                      load_at(x, first, n, v);
                      write(own, first, n, dz, v, adds, dx);
                    }
                    if (!skip) return;
                    if (x2) {
                      load_at(x2, first, n, v);
                      write(other, first, n, dz, v, adds_skip, skip);
                    } else {
                      pass_on(first, n, dz);
                    }
                  });
  }

 private:
  struct Factors {
    float dy[kVector], x[kVector], constant[kVector];
    PACELINE_KERNEL void load(const NormState& s, int channel, int channels) {
      load_channels(s.dy_factor, channel, channels, dy);
      load_channels(s.x_factor, channel, channels, x);
      load_channels(s.constant, channel, channels, constant);
    }
  };
  // Elements of samples that are there, from `first` on.
  PACELINE_KERNEL int present(std::size_t first) const {
    if (first >= count) return 0;
    const std::size_t left = count - first;
    return left < kVector ? static_cast<int>(left) : kVector;
  }
  PACELINE_KERNEL void write(const Factors& f, std::size_t first, int n, const float (&dz)[kVector],
                             const float (&v)[kVector], bool add, T* to) const {
    float sum[kVector] = {};
    if (add) load_at(static_cast<const T*>(to), first, n, sum);
    const int there = present(first);
    for (int i = 0; i < kVector; ++i) {
      if (i < there) sum[i] += f.dy[i] * dz[i] + f.x[i] * v[i] + f.constant[i];
    }
    store_at(sum, to, first, n);
  }
  PACELINE_KERNEL void pass_on(std::size_t first, int n, const float (&dz)[kVector]) const {
    float sum[kVector] = {};
    if (adds_skip) load_at(static_cast<const T*>(skip), first, n, sum);
    const int there = present(first);
    for (int i = 0; i < kVector; ++i) {
      if (i < there) sum[i] += dz[i];
    }
    store_at(sum, skip, first, n);
  }
};

}  // namespace paceline::cuda

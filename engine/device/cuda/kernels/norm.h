// Batch normalisation in two passes in each direction: sums per channel, then one pass over the
// elements that also adds, applies ReLU and masks.
#pragma once

#include <cmath>

#include "engine/device/cuda/kernels/channel_sums.h"

namespace paceline::cuda {

// Values of one normalisation, one element per channel.
struct NormState {
  float *mean, *inverse;                   // of x; 1 / sqrt(variance + epsilon)
  float *scale, *shift;                    // y = scale x + shift
  float *dy_factor, *x_factor, *constant;  // dx = dy_factor dy + x_factor x + constant
};

// Parameters and running averages. `bias` belongs to the preceding convolution. It is not added to
// x, because normalising removes it. May be null.
struct NormParameters {
  const float *gamma, *beta, *bias;
  float *running_mean, *running_variance;
  float *gamma_gradient, *beta_gradient;
  float epsilon, keep;  // keep: share of a running average that stays in each step
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

// Computes a step's statistics and updates the running averages, from mean and variance of `rows`
// rows.
PACELINE_KERNEL inline void take_statistics(const NormState& state, const NormParameters& p,
                                            int channel, std::size_t rows, double mean,
                                            double variance) {
  set_scale(state, p, channel, mean, variance);
  const auto n = static_cast<double>(rows);
  const double keep = static_cast<double>(p.keep);
  const double bias = p.bias ? static_cast<double>(p.bias[channel]) : 0;
  float& running_mean = p.running_mean[channel];
  float& running_variance = p.running_variance[channel];
  running_mean =
      static_cast<float>(keep * static_cast<double>(running_mean) + (1 - keep) * (mean + bias));
  running_variance =
      static_cast<float>(keep * static_cast<double>(running_variance) +
                         (1 - keep) * (rows > 1 ? variance * n / (n - 1) : variance));
}

// Sums of x - pivot and its square. The pivot is x in the first row, which limits cancellation.
template <typename T>
struct NormStatistics {
  static constexpr int kSums = 2;
  const T* x;
  std::size_t rows;
  int channels;
  NormState state;
  NormParameters parameters;

  static constexpr int kAhead = kRowsAhead<T>;
  struct Start {
    float pivot[kVector];
  };
  using Fetched = Packed<T>;
  PACELINE_KERNEL Start start(int channel, int count) const {
    Start start;
    load_row(x + channel, channels, count, start.pivot);
    return start;
  }
  template <bool kWhole>
  PACELINE_KERNEL Fetched fetch(std::size_t row, int channel, int count) const {
    return packed_row<kWhole>(x + row * channels + channel, count);
  }
  PACELINE_KERNEL void add(const Fetched& fetched, const Start& start,
                           float (&sums)[2][kVector]) const {
    float v[kVector];
    unpack(fetched, v);
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
    take_statistics(state, parameters, channel, rows, mean, variance);
  }
};

// Uses the running averages.
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

// y = scale x + shift (+ skip, or + skip normalised by `branch`), then ReLU. `signs` has one bit
// per element, set if it passes.
template <typename T>
struct NormApply {
  const T *x, *skip;
  T* y;
  std::uint8_t* signs;
  std::size_t count;
  int channels;
  NormState state, branch;  // branch.scale null: adds the skip unchanged
  bool relu;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    if (!skip) {
      apply<Skip::none>(c);
    } else if (branch.scale) {
      apply<Skip::normalised>(c);
    } else {
      apply<Skip::plain>(c);
    }
  }

 private:
  enum class Skip { none, plain, normalised };

  template <Skip kSkip>
  struct Body {
    const NormApply& k;
    float scale[kVector], shift[kVector], scale2[kVector], shift2[kVector];
    struct Fetched {
      Packed<T> x, skip;
    };
    PACELINE_KERNEL void start(int channel) {
      load_channels(k.state.scale, channel, k.channels, scale);
      load_channels(k.state.shift, channel, k.channels, shift);
      if constexpr (kSkip == Skip::normalised) {
        load_channels(k.branch.scale, channel, k.channels, scale2);
        load_channels(k.branch.shift, channel, k.channels, shift2);
      }
    }
    PACELINE_KERNEL Fetched fetch(std::size_t first, int n = kVector) const {
      Fetched fetched;
      fetched.x = packed_vector(k.x + first, n);
      if constexpr (kSkip != Skip::none) fetched.skip = packed_vector(k.skip + first, n);
      return fetched;
    }
    PACELINE_KERNEL void finish(const Fetched& fetched, std::size_t first, int n = kVector) const {
      float v[kVector], other[kVector];
      unpack(fetched.x, v);
      if constexpr (kSkip != Skip::none) unpack(fetched.skip, other);
      unsigned passes = 0;
      for (int i = 0; i < kVector; ++i) {
        v[i] = v[i] * scale[i] + shift[i];
        if constexpr (kSkip == Skip::plain) v[i] += other[i];
        if constexpr (kSkip == Skip::normalised) v[i] += other[i] * scale2[i] + shift2[i];
        if (!k.relu) continue;
        if (v[i] <= 0) {
          v[i] = 0;
        } else {
          passes |= 1U << i;
        }
      }
      store_at(v, k.y, first, n);
      if (k.relu) k.signs[first / kVector] = static_cast<std::uint8_t>(passes);
    }
  };

  template <Skip kSkip, typename Context>
  PACELINE_KERNEL void apply(Context& c) const {
    over_channels(c, count / kVector, channels, Body<kSkip>{*this, {}, {}, {}, {}});
    const std::size_t first = count / kVector * kVector;
    if (first == count || c.block() != 0 || c.thread() != 0) return;
    Body<kSkip> last{*this, {}, {}, {}, {}};
    const int n = static_cast<int>(count - first);
    last.start(static_cast<int>(first % static_cast<std::size_t>(channels)));
    last.finish(last.fetch(first, n), first, n);
  }
};

// One bit per element of the vector at `first`, set if it passed. `kAligned`: `first` is a multiple
// of kVector.
template <bool kAligned>
PACELINE_KERNEL inline unsigned passing_bits(const std::uint8_t* signs, std::size_t first,
                                             int count) {
  if (!signs) return 0xFF;
  if (kAligned) return signs[first / kVector];
  unsigned bits = 0;
  for (int i = 0; i < count; ++i) {
    const std::size_t element = first + static_cast<std::size_t>(i);
    bits |= (signs[element / 8] >> (element % 8) & 1U) << i;
  }
  return bits;
}

// All bits of the halves of word i of 16-bit elements that passed, no bits of the others.
PACELINE_KERNEL inline std::uint32_t mask_of_pair(unsigned passes, int i) {
#ifdef __CUDACC__
  // The product brings bit k of four to the top of byte k; then a byte's top bit fills two bytes.
  const std::uint32_t spread = (passes >> i / 2 * 4 & 0xF) * 0x10204080U;
  std::uint32_t mask;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(mask) : "r"(spread), "r"(i % 2 == 0 ? 0x9988 : 0xBBAA));
  return mask;
#else
  return (passes >> 2 * i & 1 ? 0xFFFFU : 0) | (passes >> 2 * i & 2 ? 0xFFFF0000U : 0);
#endif
}

// dy if ReLU passed it, else zero.
template <typename T>
PACELINE_KERNEL inline void unpack_passed(Packed<T> dy, unsigned passes, float (&to)[kVector]) {
  for (int i = 0; i < kVector / 2; ++i) dy.words[i] &= mask_of_pair(passes, i);
  unpack(dy, to);
}
PACELINE_KERNEL inline void unpack_passed(const Packed<float>& dy, unsigned passes,
                                          float (&to)[kVector]) {
  for (int i = 0; i < kVector; ++i) to[i] = passes >> i & 1 ? dy.values[i] : 0;
}

// Gradients of gamma and beta, and the factors of x's gradient, from sums of dz and dz (x - mean)
// over `rows` rows. Ioffe and Szegedy, arXiv 1502.03167, section 3, with terms collected by dz, x
// and constants.
PACELINE_KERNEL inline void set_factors(const NormState& s, const NormParameters& p, int channel,
                                        std::size_t rows, double sum, double sum_x) {
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

// Sums of dz and dz (x - mean), and with a normalised branch dz (x2 - mean2); dz = dy where it
// passed. A template parameter, because most have no branch, and it would use a third of the
// registers.
template <typename T, bool kBranch>
struct NormGradientSums {
  static constexpr int kSums = kBranch ? 3 : 2;
  const T *x, *x2, *dy;
  const std::uint8_t* signs;  // null: all pass
  std::size_t rows;
  int channels;
  NormState state, branch;
  NormParameters parameters, branch_parameters;

  static constexpr int kAhead = kRowsAhead<T>;
  struct Start {
    float mean[kVector], mean2[kVector];
  };
  struct Fetched {
    Packed<T> dy, x, x2;
    unsigned passes;
  };
  PACELINE_KERNEL Start start(int channel, int count) const {
    Start start{};
    for (int i = 0; i < count; ++i) {
      start.mean[i] = state.mean[channel + i];
      if constexpr (kBranch) start.mean2[i] = branch.mean[channel + i];
    }
    return start;
  }
  template <bool kWhole>
  PACELINE_KERNEL Fetched fetch(std::size_t row, int channel, int count) const {
    const std::size_t at = row * channels + channel;
    Fetched fetched;
    fetched.dy = packed_row<kWhole>(dy + at, count);
    fetched.x = packed_row<kWhole>(x + at, count);
    if constexpr (kBranch) fetched.x2 = packed_row<kWhole>(x2 + at, count);
    fetched.passes = passing_bits<kWhole>(signs, at, count);
    return fetched;
  }
  PACELINE_KERNEL void add(const Fetched& fetched, const Start& start,
                           float (&sums)[kSums][kVector]) const {
    float v[kVector], dz[kVector];
    unpack_passed(fetched.dy, fetched.passes, dz);
    unpack(fetched.x, v);
    for (int i = 0; i < kVector; ++i) {
      sums[0][i] += dz[i];
      sums[1][i] += dz[i] * (v[i] - start.mean[i]);
    }
    if constexpr (kBranch) {
      unpack(fetched.x2, v);
      for (int i = 0; i < kVector; ++i) sums[2][i] += dz[i] * (v[i] - start.mean2[i]);
    }
  }
  PACELINE_KERNEL void finish(int channel, const double (&totals)[kSums]) const {
    set_factors(state, parameters, channel, rows, totals[0], totals[1]);
    if constexpr (kBranch)
      set_factors(branch, branch_parameters, channel, rows, totals[0], totals[2]);
  }
};

// The factors of a vector's channels.
struct GradientFactors {
  float dy[kVector], x[kVector], constant[kVector];

  PACELINE_KERNEL void load(const NormState& s, int channel, int channels) {
    load_channels(s.dy_factor, channel, channels, dy);
    load_channels(s.x_factor, channel, channels, x);
    load_channels(s.constant, channel, channels, constant);
  }
  PACELINE_KERNEL float gradient(int i, float dz, float value) const {
    return dy[i] * dz + (x[i] * value + constant[i]);
  }
  template <typename T>
  PACELINE_KERNEL Packed<T> gradients(const float (&dz)[kVector], const Packed<T>& of) const {
    float v[kVector];
    unpack(of, v);
    for (int i = 0; i < kVector; ++i) v[i] = gradient(i, dz[i], v[i]);
    return pack<T>(v);
  }
};

// Gradients of x (dx; null: not needed) and of the skip (null: not needed; may equal dy). Zero for
// the `missing` elements after `count`.
template <typename T, bool kBranch>
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
    // Nearly all vectors of nearly all planes are whole, present, and added to nothing.
    const std::size_t plain = dx && !adds && !adds_skip ? count / kVector : 0;
    if (skip) {
      over_channels(c, plain, channels, Plain<true>{*this, {}, {}});
    } else {
      over_channels(c, plain, channels, Plain<false>{*this, {}, {}});
    }
    const std::size_t all = count + missing;
    over(c, (all + kVector - 1) / kVector - plain, [&](std::size_t i) {
      const std::size_t first = (plain + i) * kVector;
      vector(first, all - first < kVector ? static_cast<int>(all - first) : kVector);
    });
  }

 private:
  template <bool kSkip>
  struct Plain {
    const NormGradient& k;
    GradientFactors own, other;
    struct Fetched {
      Packed<T> dy, x, x2;
      unsigned passes;
    };
    PACELINE_KERNEL void start(int channel) {
      own.load(k.state, channel, k.channels);
      if constexpr (kBranch && kSkip) other.load(k.branch, channel, k.channels);
    }
    PACELINE_KERNEL Fetched fetch(std::size_t first) const {
      Fetched fetched;
      fetched.dy = packed_at(k.dy + first);
      fetched.x = packed_at(k.x + first);
      if constexpr (kBranch && kSkip) fetched.x2 = packed_at(k.x2 + first);
      fetched.passes = passing_bits<true>(k.signs, first, kVector);
      return fetched;
    }
    PACELINE_KERNEL void finish(const Fetched& fetched, std::size_t first) const {
      float dz[kVector];
      unpack_passed(fetched.dy, fetched.passes, dz);
      put(own.gradients(dz, fetched.x), k.dx + first);
      if constexpr (kSkip) {
        put(kBranch ? other.gradients(dz, fetched.x2) : pack<T>(dz), k.skip + first);
      }
    }
  };

  // Of any vector, of which `n` elements are of the planes and some are of samples that are
  // present.
  PACELINE_KERNEL void vector(std::size_t first, int n) const {
    const int channel = static_cast<int>(first % static_cast<std::size_t>(channels));
    const int there = first >= count            ? 0
                      : count - first < kVector ? static_cast<int>(count - first)
                                                : kVector;
    float dz[kVector], v[kVector] = {}, v2[kVector] = {};
    unpack_passed(packed_vector(dy + first, n), passing_bits<true>(signs, first, n), dz);
    if (dx) load_at(x, first, n, v);
    if (kBranch && skip) load_at(x2, first, n, v2);
    if (dx) {
      GradientFactors own;
      own.load(state, channel, channels);
      for (int i = 0; i < kVector; ++i) v[i] = own.gradient(i, dz[i], v[i]);
      add(v, there, adds, dx, first, n);
    }
    if (!skip) return;
    if constexpr (kBranch) {
      GradientFactors other;
      other.load(branch, channel, channels);
      for (int i = 0; i < kVector; ++i) v2[i] = other.gradient(i, dz[i], v2[i]);
      add(v2, there, adds_skip, skip, first, n);
    } else {
      add(dz, there, adds_skip, skip, first, n);
    }
  }
  // A plane that is normalised and added to itself has one gradient, so this is read last.
  PACELINE_KERNEL void add(const float (&values)[kVector], int there, bool adds_to, T* to,
                           std::size_t first, int n) const {
    float sum[kVector] = {};
    if (adds_to) load_at(static_cast<const T*>(to), first, n, sum);
    for (int i = 0; i < kVector; ++i) {
      if (i < there) sum[i] += values[i];
    }
    store_at(sum, to, first, n);
  }
};

}  // namespace paceline::cuda

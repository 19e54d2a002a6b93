// Batch normalisation, ReLU and max pooling as one pass in each direction, as at the start of a
// ResNet. The plane between normalisation and pooling, and its gradient, are never written.
//
// Backward reads the pooled gradient through the positions that pooling chose. If a window has no
// positive element, ReLU passes nothing and the position is kNoPlace.
#pragma once

#include "engine/device/cuda/kernels/norm.h"
#include "engine/device/cuda/kernels/pool.h"

namespace paceline::cuda {

constexpr std::uint8_t kNoPlace = 255;

// Compares values as they would have been stored, so the same elements are chosen as by separate
// operations. One thread per group of channels.
template <typename T>
struct NormPool {
  Window w;
  const T* x;
  T* y;
  std::uint8_t* chosen;
  std::size_t samples;
  NormState state;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, groups_of(samples, w.out_height, w.out_width, w.channels), [&](std::size_t item) {
      const PlacedGroup g(item, w.out_height, w.out_width, w.channels);
      float scale[kVector], shift[kVector], largest[kVector] = {};
      load_channels(state.scale, g.channel, w.channels, scale);
      load_channels(state.shift, g.channel, w.channels, shift);
      Places places;
      for (std::uint8_t& place : places.of) place = kNoPlace;
      over_window(w, g, x, [&](int k, const float(&v)[kVector]) {
        for (int i = 0; i < kVector; ++i) {
          const float normalised = to_float(from_float<T>(v[i] * scale[i] + shift[i]));
          if (!is_chosen(normalised, largest[i])) continue;
          places.of[i] = static_cast<std::uint8_t>(k);
          largest[i] = normalised;
        }
      });
      const std::size_t at = output_at(w, g, static_cast<int>(g.row), static_cast<int>(g.column));
      store_row(largest, w.channels, g.count, y + at);
      store_places(places, w.channels, g.count, chosen + at);
    });
  }
};

// The gradient that reaches an input element through pooling and ReLU.
template <typename T>
struct PooledGradient {
  Window w;
  const T* dy;
  const std::uint8_t* chosen;

  PACELINE_KERNEL void gather(const PlacedGroup& g, float (&to)[kVector]) const {
    for (float& value : to) value = 0;
    add_pooled(w, dy, chosen, g, to);
  }
};

// The sums of NormGradientSums.
template <typename T>
struct NormPoolGradientSums {
  static constexpr int kSums = 2;
  const T* x;
  PooledGradient<T> gradient;
  std::size_t rows;
  NormState state;
  NormParameters parameters;

  static constexpr int kAhead = 2;
  struct Start {
    float mean[kVector];
  };
  struct Fetched {
    Packed<T> x;
    float dz[kVector];
  };
  PACELINE_KERNEL Start start(int channel, int count) const {
    Start start{};
    for (int i = 0; i < count; ++i) start.mean[i] = state.mean[channel + i];
    return start;
  }
  template <bool kWhole>
  PACELINE_KERNEL Fetched fetch(std::size_t row, int channel, int count) const {
    Fetched fetched;
    fetched.x = packed_row<kWhole>(
        x + row * static_cast<std::size_t>(gradient.w.channels) + channel, count);
    gradient.gather(
        PlacedGroup::of_row(row, gradient.w.in_height, gradient.w.in_width, channel, count),
        fetched.dz);
    return fetched;
  }
  PACELINE_KERNEL void add(const Fetched& fetched, const Start& start,
                           float (&sums)[2][kVector]) const {
    float v[kVector];
    unpack(fetched.x, v);
    for (int i = 0; i < kVector; ++i) {
      sums[0][i] += fetched.dz[i];
      sums[1][i] += fetched.dz[i] * (v[i] - start.mean[i]);
    }
  }
  PACELINE_KERNEL void finish(int channel, const double (&totals)[2]) const {
    set_factors(state, parameters, channel, rows, totals[0], totals[1]);
  }
};

// The gradient of x for the first `present` of `samples`; zero for the others.
template <typename T>
struct NormPoolGradient {
  const T* x;
  PooledGradient<T> gradient;
  T* dx;
  std::size_t present, samples;
  NormState state;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const Window& w = gradient.w;
    over(c, groups_of(samples, w.in_height, w.in_width, w.channels), [&](std::size_t item) {
      const PlacedGroup g(item, w.in_height, w.in_width, w.channels);
      const std::size_t at = input_at(w, g, static_cast<int>(g.row), static_cast<int>(g.column));
      float sum[kVector] = {};
      if (adds) load_row(static_cast<const T*>(dx) + at, w.channels, g.count, sum);
      if (g.sample < present) {
        float v[kVector], dz[kVector], of_dy[kVector], of_x[kVector], constant[kVector];
        load_row(x + at, w.channels, g.count, v);
        gradient.gather(g, dz);
        load_channels(state.dy_factor, g.channel, w.channels, of_dy);
        load_channels(state.x_factor, g.channel, w.channels, of_x);
        load_channels(state.constant, g.channel, w.channels, constant);
        for (int i = 0; i < kVector; ++i) {
          sum[i] += of_dy[i] * dz[i] + of_x[i] * v[i] + constant[i];
        }
      }
      store_row(sum, w.channels, g.count, dx + at);
    });
  }
};

}  // namespace paceline::cuda

// Batch normalisation, ReLU and max pooling as one pass in each direction, as at the start of a
// ResNet. The plane between normalisation and pooling, and its gradient, are never written.
//
// Backward reads the pooled gradient through the positions that pooling chose. If a window has no
// positive element, ReLU passes nothing and the position is kNoPlace.
#pragma once

#include "engine/device/cuda/kernels/norm.h"
#include "engine/device/cuda/kernels/pool.h"

namespace paceline::cuda {

// The largest element of a window so far, as 16 bits that grow with it above 16 bits that fall with
// its position: the largest key is that of the first of the largest elements. What is not positive
// stays below 0 or has no bits; NaN is above all.
template <typename T>
struct LargestOf {
  std::int32_t keys[kVector] = {};

  PACELINE_KERNEL void take(int k, const float (&v)[kVector]) {
    const Packed<T> packed = pack<T>(v);
    for (int i = 0; i < kVector; ++i) {
      const std::uint32_t word = packed.words[i / 2];
      const std::uint32_t bits = i % 2 == 0 ? word << 16 : word & 0xFFFF0000U;
      const auto key = static_cast<std::int32_t>(bits | static_cast<std::uint32_t>(0xFFFF - k));
      keys[i] = key > keys[i] ? key : keys[i];
    }
  }
  PACELINE_KERNEL void give(float (&largest)[kVector], Places& places) const {
    for (int i = 0; i < kVector; ++i) {
      const auto key = static_cast<std::uint32_t>(keys[i]);
      largest[i] = to_float(T{static_cast<std::uint16_t>(key >> 16)});
      places.of[i] = static_cast<std::uint8_t>(key >> 16 == 0 ? kNoPlace : 0xFFFF - (key & 0xFFFF));
    }
  }
};
template <>
struct LargestOf<float> {
  float values[kVector] = {};
  Places chosen{{kNoPlace, kNoPlace, kNoPlace, kNoPlace, kNoPlace, kNoPlace, kNoPlace, kNoPlace}};

  PACELINE_KERNEL void take(int k, const float (&v)[kVector]) {
    for (int i = 0; i < kVector; ++i) {
      if (!is_chosen(v[i], values[i])) continue;
      chosen.of[i] = static_cast<std::uint8_t>(k);
      values[i] = v[i];
    }
  }
  PACELINE_KERNEL void give(float (&largest)[kVector], Places& places) const {
    for (int i = 0; i < kVector; ++i) largest[i] = values[i];
    places = chosen;
  }
};

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
    ThreeByTwo::fits(w) ? run(c, ThreeByTwo(w)) : run(c, w);
  }

 private:
  template <typename Context, typename OfWindow>
  PACELINE_KERNEL void run(Context& c, const OfWindow& w) const {
    over(c, count_groups(samples, w.out_height, w.out_width, w.channels), [&](std::size_t item) {
      const PlacedGroup g(item, w.out_height, w.out_width, w.channels);
      float scale[kVector], shift[kVector], largest[kVector];
      load_channels(state.scale, g.channel, w.channels, scale);
      load_channels(state.shift, g.channel, w.channels, shift);
      LargestOf<T> of_window;
      over_window(w, g, x, [&](int k, const Packed<T>& packed) {
        float v[kVector];
        unpack(packed, v);
        for (int i = 0; i < kVector; ++i) v[i] = v[i] * scale[i] + shift[i];
        of_window.take(k, v);
      });
      Places places;
      of_window.give(largest, places);
      const std::size_t at = output_at(w, g, static_cast<int>(g.row), static_cast<int>(g.column));
      store_row(largest, w.channels, g.count, y + at);
      store_places(places, w.channels, g.count, chosen + at);
    });
  }
};

// The sums of NormGradientSums, over windows instead of elements, of which there are four times as
// many: each window passes its gradient to the element that it has chosen. `rows`: of x.
template <typename T>
struct NormPoolGradientSums {
  static constexpr int kSums = 2, kBlocks = 2;
  Window w;
  const T *x, *dy;
  const std::uint8_t* chosen;
  std::size_t rows;
  NormState state;
  NormParameters parameters;

  static constexpr int kAhead = 2;
  struct Start {
    float mean[kVector];
  };
  struct Fetched {
    Packed<T> dy;
    T x[kVector];
    unsigned passes;
  };
  PACELINE_KERNEL Start start(int channel, int count) const {
    Start start{};
    for (int i = 0; i < count; ++i) start.mean[i] = state.mean[channel + i];
    return start;
  }
  template <bool kWhole>
  PACELINE_KERNEL Fetched fetch(std::size_t window, int channel, int count) const {
    const std::size_t at = window * static_cast<std::size_t>(w.channels) + channel;
    Fetched fetched{};
    fetched.dy = packed_row<kWhole>(dy + at, count);
    const Places places = load_places(chosen + at, w.channels, count);
    const PlacedGroup g =
        PlacedGroup::of_row(window, w.out_height, w.out_width, channel, kWhole ? kVector : count);
    fetched.passes = 0;
    if (ThreeByTwo::fits(w)) {
      gather(ThreeByTwo(w), g, places, fetched);
    } else {
      gather(w, g, places, fetched);
    }
    return fetched;
  }
  template <typename OfWindow>
  PACELINE_KERNEL void gather(const OfWindow& w, const PlacedGroup& g, const Places& places,
                              Fetched& fetched) const {
    // May be above or left of the input; no element there is chosen.
    const std::ptrdiff_t row = static_cast<int>(g.row) * w.stride - w.padding;
    const std::ptrdiff_t column = static_cast<int>(g.column) * w.stride - w.padding;
    const T* first = x + static_cast<std::ptrdiff_t>(input_at(w, g, 0, 0)) +
                     (row * w.in_width + column) * w.channels;
    PACELINE_UNROLL
    for (int i = 0; i < kVector; ++i) {
      const unsigned k = places.of[i], kernel = static_cast<unsigned>(w.kernel);
      if (i >= g.count || k == kNoPlace) continue;
      fetched.passes |= 1U << i;
      fetched.x[i] =
          first[static_cast<int>(k / kernel * static_cast<unsigned>(w.in_width) + k % kernel) *
                    w.channels +
                i];
    }
  }
  PACELINE_KERNEL void add(const Fetched& fetched, const Start& start,
                           float (&sums)[2][kVector]) const {
    float dz[kVector];
    unpack_passed(fetched.dy, fetched.passes, dz);
    for (int i = 0; i < kVector; ++i) {
      sums[0][i] += dz[i];
      sums[1][i] += dz[i] * (to_float(fetched.x[i]) - start.mean[i]);
    }
  }
  PACELINE_KERNEL void finish(int channel, const double (&totals)[2]) const {
    set_factors(state, parameters, channel, rows, totals[0], totals[1]);
  }
};

// The gradient of x for the first `present` of `samples`; zero for the others.
template <typename T>
struct NormPoolGradient {
  Window w;
  const T *x, *dy;
  const std::uint8_t* chosen;
  T* dx;
  std::size_t present, samples;
  NormState state;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    GradientFactors factors;
    const auto start = [&](const PlacedGroup& g) { factors.load(state, g.channel, w.channels); };
    const auto finish = [&](const PlacedGroup& g, std::size_t at, const float(&dz)[kVector]) {
      float sum[kVector] = {}, v[kVector];
      if (adds) load_row(static_cast<const T*>(dx) + at, w.channels, g.count, sum);
      if (g.sample < present) {
        load_row(x + at, w.channels, g.count, v);
        for (int i = 0; i < kVector; ++i) sum[i] += factors.gradient(i, dz[i], v[i]);
      }
      store_row(sum, w.channels, g.count, dx + at);
    };
    over_inputs(c, w, samples, dy, chosen, start, finish);
  }
};

}  // namespace paceline::cuda

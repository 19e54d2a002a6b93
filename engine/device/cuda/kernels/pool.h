// Pooling of NHWC planes.
#pragma once

#include "engine/device/cuda/kernels/context.h"

namespace paceline::cuda {

struct Window {
  int in_height, in_width, out_height, out_width;
  int kernel, stride, padding, channels;
};

// The window of a ResNet, in whole vectors of channels. With these numbers as constants, loops over
// its elements are unrolled and loads wait together.
struct ThreeByTwo {
  static constexpr int kernel = 3, stride = 2, padding = 1;
  int in_height, in_width, out_height, out_width, channels;

  PACELINE_KERNEL static bool fits(const Window& w) {
    return w.kernel == kernel && w.stride == stride && w.padding == padding &&
           w.channels % kVector == 0;
  }
  PACELINE_KERNEL explicit ThreeByTwo(const Window& w)
      : in_height(w.in_height),
        in_width(w.in_width),
        out_height(w.out_height),
        out_width(w.out_width),
        channels(w.channels) {}
};

// 32-bit division is several times as fast as 64-bit on a GPU, and indices rarely need 64 bits.
struct Divided {
  std::size_t quotient;
  unsigned rest;
};
PACELINE_KERNEL inline Divided divide(std::size_t value, unsigned by) {
  if (value >> 32 != 0) return {value / by, static_cast<unsigned>(value % by)};
  const auto small = static_cast<unsigned>(value);
  return {small / by, small % by};
}

// The position of a group of kVector channels.
struct PlacedGroup {
  unsigned sample, row, column;
  int channel, count;  // count: valid channels of the group

  PACELINE_KERNEL PlacedGroup(std::size_t item, int height, int width, int channels) {
    const unsigned groups = static_cast<unsigned>(channels + kVector - 1) / kVector;
    const Divided divided = divide(item, groups);
    channel = static_cast<int>(divided.rest) * kVector;
    count = channels - channel < kVector ? channels - channel : kVector;
    place(divided.quotient, height, width);
  }
  // `row`: of a plane as samples x height x width rows of channels.
  PACELINE_KERNEL static PlacedGroup of_row(std::size_t row, int height, int width, int channel,
                                            int count) {
    PlacedGroup group;
    group.channel = channel;
    group.count = count;
    group.place(row, height, width);
    return group;
  }

 private:
  PlacedGroup() = default;
  PACELINE_KERNEL void place(std::size_t at, int height, int width) {
    const Divided line = divide(at, static_cast<unsigned>(width));
    const Divided of_plane = divide(line.quotient, static_cast<unsigned>(height));
    column = line.rest;
    row = of_plane.rest;
    sample = static_cast<unsigned>(of_plane.quotient);
  }
};

// Index of the group's channels at a row and column of its sample's input or output.
template <typename OfWindow>
PACELINE_KERNEL inline std::size_t input_at(const OfWindow& w, const PlacedGroup& g, int row,
                                            int column) {
  return ((static_cast<std::size_t>(g.sample) * w.in_height + row) * w.in_width + column) *
             w.channels +
         g.channel;
}
template <typename OfWindow>
PACELINE_KERNEL inline std::size_t output_at(const OfWindow& w, const PlacedGroup& g, int row,
                                             int column) {
  return ((static_cast<std::size_t>(g.sample) * w.out_height + row) * w.out_width + column) *
             w.channels +
         g.channel;
}

PACELINE_KERNEL inline std::size_t count_groups(std::size_t samples, int height, int width,
                                                int channels) {
  return samples * height * width * ((channels + kVector - 1) / kVector);
}

// Calls body(position in the window, packed values) for the input elements of an output's window,
// row by row.
template <typename T, typename Body>
PACELINE_KERNEL inline void over_window(const Window& w, const PlacedGroup& g, const T* x,
                                        Body body) {
  for (int k = 0; k < w.kernel * w.kernel; ++k) {
    const int ih = static_cast<int>(g.row) * w.stride + k / w.kernel - w.padding;
    const int iw = static_cast<int>(g.column) * w.stride + k % w.kernel - w.padding;
    if (ih < 0 || ih >= w.in_height || iw < 0 || iw >= w.in_width) continue;
    const T* from = x + input_at(w, g, ih, iw);
    body(k, w.channels % kVector == 0 ? packed_at(from) : packed_some(from, g.count));
  }
}

// The same for one that is unrolled: all loads first. body(position, the packed values) only for
// those within the input.
template <typename T, typename Body>
PACELINE_KERNEL inline void over_window(const ThreeByTwo& w, const PlacedGroup& g, const T* x,
                                        Body body) {
  constexpr int kPlaces = ThreeByTwo::kernel * ThreeByTwo::kernel;
  const int row = static_cast<int>(g.row) * 2 - 1, column = static_cast<int>(g.column) * 2 - 1;
  const T* centre = x + input_at(w, g, row + 1, column + 1);
  const int of_row = w.in_width * w.channels;
  Packed<T> packed[kPlaces];
  bool within[kPlaces];
  for (int k = 0; k < kPlaces; ++k) {
    const int down = k / 3 - 1, right = k % 3 - 1;
    within[k] = static_cast<unsigned>(row + 1 + down) < static_cast<unsigned>(w.in_height) &&
                static_cast<unsigned>(column + 1 + right) < static_cast<unsigned>(w.in_width);
    if (within[k]) packed[k] = packed_at(centre + (down * of_row + right * w.channels));
  }
  for (int k = 0; k < kPlaces; ++k) {
    if (within[k]) body(k, packed[k]);
  }
}

// The position where a window has chosen nothing.
constexpr std::uint8_t kNoPlace = 255;

// Positions for a group of channels, in one access.
struct alignas(kVector) Places {
  std::uint8_t of[kVector];
};

PACELINE_KERNEL inline Places load_places(const std::uint8_t* from, int channels, int count) {
  if (channels % kVector == 0) return *reinterpret_cast<const Places*>(from);
  Places places = {};
  for (int i = 0; i < count; ++i) places.of[i] = from[i];
  return places;
}

PACELINE_KERNEL inline void store_places(const Places& places, int channels, int count,
                                         std::uint8_t* to) {
  if (channels % kVector == 0) {
    *reinterpret_cast<Places*>(to) = places;
    return;
  }
  for (int i = 0; i < count; ++i) to[i] = places.of[i];
}

// Adds the gradients of the windows that chose an input element. Each input looks at the windows
// that contain it, so there are no concurrent additions.
template <typename T>
PACELINE_KERNEL inline void add_pooled(const Window& w, const T* dy, const std::uint8_t* chosen,
                                       const PlacedGroup& g, float (&sum)[kVector]) {
  const int ih = static_cast<int>(g.row) + w.padding, iw = static_cast<int>(g.column) + w.padding;
  const auto strides = [&w](int at) { return w.stride == 2 ? at >> 1 : at / w.stride; };
  // The first and the last window that contain a padded coordinate.
  const auto first = [&](int at) { return at < w.kernel ? 0 : strides(at - w.kernel) + 1; };
  const auto last = [&](int at, int end) { return strides(at) < end ? strides(at) : end - 1; };
  const int last_row = last(ih, w.out_height), last_column = last(iw, w.out_width);
  for (int oh = first(ih); oh <= last_row; ++oh) {
    for (int ow = first(iw); ow <= last_column; ++ow) {
      const int k = (ih - oh * w.stride) * w.kernel + iw - ow * w.stride;
      const std::size_t at = output_at(w, g, oh, ow);
      const Packed<T> gradient =
          w.channels % kVector == 0 ? packed_at(dy + at) : packed_some(dy + at, g.count);
      const Places places = load_places(chosen + at, w.channels, g.count);
      float v[kVector];
      unpack(gradient, v);
      for (int i = 0; i < g.count; ++i) {
        if (places.of[i] == k) sum[i] += v[i];
      }
    }
  }
}

// The same for the inputs at rows 2 row, 2 row + 1 and columns 2 column, 2 column + 1 of a sample,
// from the four windows that contain any of them, each loaded once.
template <typename T>
PACELINE_KERNEL inline void gather_four(const ThreeByTwo& w, const T* dy,
                                        const std::uint8_t* chosen, const PlacedGroup& g,
                                        float (&to)[4][kVector]) {
  const bool next_row = static_cast<int>(g.row) + 1 < w.out_height;
  const bool next_column = static_cast<int>(g.column) + 1 < w.out_width;
  const std::size_t at = output_at(w, g, static_cast<int>(g.row), static_cast<int>(g.column));
  Packed<T> gradient[4];
  Places places[4];
  for (int q = 0; q < 4; ++q) {
    places[q] =
        Places{{kNoPlace, kNoPlace, kNoPlace, kNoPlace, kNoPlace, kNoPlace, kNoPlace, kNoPlace}};
    gradient[q] = Packed<T>{};
    const std::size_t window =
        at + static_cast<std::size_t>((q / 2 * w.out_width + q % 2) * w.channels);
    if ((q / 2 == 0 || next_row) && (q % 2 == 0 || next_column)) {
      gradient[q] = packed_at(dy + window);
      places[q] = load_places(chosen + window, w.channels, kVector);
    }
  }
  for (int in = 0; in < 4; ++in) {
    for (float& value : to[in]) value = 0;
  }
  for (int q = 0; q < 4; ++q) {
    float v[kVector];
    unpack(gradient[q], v);
    for (int in = 0; in < 4; ++in) {
      // Where the input lies in this window.
      const int row = in / 2 + 1 - q / 2 * 2, column = in % 2 + 1 - q % 2 * 2;
      if (row < 0 || column < 0) continue;
      for (int i = 0; i < kVector; ++i) {
        if (places[q].of[i] == row * 3 + column) to[in][i] += v[i];
      }
    }
  }
}

// Calls finish(group, its index in the input, gradient) for every group of inputs of `samples`, and
// start(group) before, once for several of the same channels.
template <typename T, typename Context, typename Start, typename Finish>
PACELINE_KERNEL inline void over_inputs(const Context& c, const Window& w, std::size_t samples,
                                        const T* dy, const std::uint8_t* chosen, Start start,
                                        Finish finish) {
  if (!ThreeByTwo::fits(w)) {
    return over(
        c, count_groups(samples, w.in_height, w.in_width, w.channels), [&](std::size_t item) {
          const PlacedGroup g(item, w.in_height, w.in_width, w.channels);
          float gradient[kVector] = {};
          start(g);
          add_pooled(w, dy, chosen, g, gradient);
          finish(g, input_at(w, g, static_cast<int>(g.row), static_cast<int>(g.column)), gradient);
        });
  }
  over(c, count_groups(samples, w.out_height, w.out_width, w.channels), [&](std::size_t item) {
    const PlacedGroup g(item, w.out_height, w.out_width, w.channels);
    float gradient[4][kVector];
    start(g);
    gather_four(ThreeByTwo(w), dy, chosen, g, gradient);
    for (int in = 0; in < 4; ++in) {
      const int row = static_cast<int>(g.row) * 2 + in / 2;
      const int column = static_cast<int>(g.column) * 2 + in % 2;
      if (row < w.in_height && column < w.in_width)
        finish(g, input_at(w, g, row, column), gradient[in]);
    }
  });
}

// Whether an element replaces the current maximum. NaN replaces everything, and nothing replaces
// NaN.
PACELINE_KERNEL inline bool is_chosen(float value, float largest) {
  return value > largest || value != value;
}

// `chosen` is the position of the largest element in its window, row by row; ties go to the first.
// One thread per group of channels.
template <typename T>
struct MaxPool {
  Window w;
  const T* x;
  T* y;
  std::uint8_t* chosen;
  std::size_t samples;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    ThreeByTwo::fits(w) ? run(c, ThreeByTwo(w)) : run(c, w);
  }

 private:
  template <typename Context, typename OfWindow>
  PACELINE_KERNEL void run(Context& c, const OfWindow& w) const {
    over(c, count_groups(samples, w.out_height, w.out_width, w.channels), [&](std::size_t item) {
      const PlacedGroup g(item, w.out_height, w.out_width, w.channels);
      float largest[kVector] = {};
      int best[kVector];
      for (int& place : best) place = -1;
      over_window(w, g, x, [&](int k, const Packed<T>& packed) {
        float v[kVector];
        unpack(packed, v);
        for (int i = 0; i < kVector; ++i) {
          if (best[i] >= 0 && !is_chosen(v[i], largest[i])) continue;
          best[i] = k;
          largest[i] = v[i];
        }
      });
      const std::size_t at = output_at(w, g, static_cast<int>(g.row), static_cast<int>(g.column));
      store_row(largest, w.channels, g.count, y + at);
      Places places;
      for (int i = 0; i < kVector; ++i) places.of[i] = static_cast<std::uint8_t>(best[i]);
      store_places(places, w.channels, g.count, chosen + at);
    });
  }
};

template <typename T>
struct MaxPoolBackward {
  Window w;
  const T* dy;
  const std::uint8_t* chosen;
  T* dx;
  std::size_t samples;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const auto finish = [&](const PlacedGroup& g, std::size_t at, float(&sum)[kVector]) {
      float old[kVector];
      if (adds) {
        load_row(static_cast<const T*>(dx) + at, w.channels, g.count, old);
        for (int i = 0; i < kVector; ++i) sum[i] += old[i];
      }
      store_row(sum, w.channels, g.count, dx + at);
    };
    over_inputs(
        c, w, samples, dy, chosen, [](const PlacedGroup&) {}, finish);
  }
};

// The mean of each channel over its plane. One thread per channel and sample.
template <typename T>
struct AveragePool {
  const T* x;
  float* y;
  std::size_t samples;
  int places, channels;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, samples * channels, [&](std::size_t i) {
      const T* plane = x + i / channels * places * channels + i % channels;
      float sum = 0;
      for (int p = 0; p < places; ++p)
        sum += to_float(plane[static_cast<std::size_t>(p) * channels]);
      y[i] = sum / static_cast<float>(places);
    });
  }
};

template <typename T>
struct AveragePoolBackward {
  const float* dy;
  T* dx;
  std::size_t samples;
  int places, channels;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const std::size_t of_sample = static_cast<std::size_t>(places) * channels;
    over(c, samples * of_sample, [&](std::size_t i) {
      float value = dy[i / of_sample * channels + i % channels] / static_cast<float>(places);
      if (adds) value += to_float(dx[i]);
      dx[i] = from_float<T>(value);
    });
  }
};

// The same for channels in whole vectors: one thread a vector.
template <typename T>
struct AveragePoolByVector {
  AveragePoolBackward<T> pool;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const std::size_t of_sample = static_cast<std::size_t>(pool.places) * pool.channels;
    over_vectors(c, pool.samples * of_sample, [&](std::size_t first, int n) {
      float value[kVector], before[kVector] = {};
      load_at(pool.dy, first / of_sample * pool.channels + first % pool.channels, n, value);
      if (pool.adds) load_at(pool.dx, first, n, before);
      for (int i = 0; i < kVector; ++i) {
        value[i] = before[i] + value[i] / static_cast<float>(pool.places);
      }
      store_at(value, pool.dx, first, n);
    });
  }
};

}  // namespace paceline::cuda

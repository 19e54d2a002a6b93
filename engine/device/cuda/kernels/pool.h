// Pooling of NHWC planes.
#pragma once

#include "engine/device/cuda/kernels/context.h"

namespace paceline::cuda {

struct Window {
  int in_height, in_width, out_height, out_width;
  int kernel, stride, padding, channels;
};

// Where a group of kVector channels lies.
struct PlacedGroup {
  unsigned sample, row, column;
  int channel, count;  // count: of the group's channels there are so many

  PACELINE_KERNEL PlacedGroup(std::size_t item, int height, int width, int channels) {
    const unsigned groups = static_cast<unsigned>(channels + kVector - 1) / kVector;
    const std::size_t place = item / groups;
    channel = static_cast<int>(item % groups) * kVector;
    count = channels - channel < kVector ? channels - channel : kVector;
    const std::size_t line = place / static_cast<unsigned>(width);
    column = static_cast<unsigned>(place % static_cast<unsigned>(width));
    row = static_cast<unsigned>(line % static_cast<unsigned>(height));
    sample = static_cast<unsigned>(line / static_cast<unsigned>(height));
  }
};

PACELINE_KERNEL inline std::size_t groups_of(std::size_t samples, int height, int width,
                                             int channels) {
  return samples * height * width * ((channels + kVector - 1) / kVector);
}

// Places of a group of channels, one access.
struct alignas(kVector) Places {
  std::uint8_t of[kVector];
};

// `chosen` is the place of the largest element in its window, row by row; the first of equals. A
// thread takes a group of channels.
template <typename T>
struct MaxPool {
  Window w;
  const T* x;
  T* y;
  std::uint8_t* chosen;
  std::size_t samples;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, groups_of(samples, w.out_height, w.out_width, w.channels), [&](std::size_t item) {
      const PlacedGroup g(item, w.out_height, w.out_width, w.channels);
      float largest[kVector] = {};
      int best[kVector];
      for (int& place : best) place = -1;
      for (int k = 0; k < w.kernel * w.kernel; ++k) {
        const int ih = static_cast<int>(g.row) * w.stride + k / w.kernel - w.padding;
        const int iw = static_cast<int>(g.column) * w.stride + k % w.kernel - w.padding;
        if (ih < 0 || ih >= w.in_height || iw < 0 || iw >= w.in_width) continue;
        float v[kVector];
        load_row(x +
                     ((static_cast<std::size_t>(g.sample) * w.in_height + ih) * w.in_width + iw) *
                         w.channels +
                     g.channel,
                 w.channels, g.count, v);
        for (int i = 0; i < kVector; ++i) {
          if (best[i] >= 0 && !(v[i] > largest[i])) continue;
          best[i] = k;
          largest[i] = v[i];
        }
      }
      const std::size_t at =
          ((static_cast<std::size_t>(g.sample) * w.out_height + g.row) * w.out_width + g.column) *
              w.channels +
          g.channel;
      store_row(largest, w.channels, g.count, y + at);
      Places places;
      for (int i = 0; i < kVector; ++i) places.of[i] = static_cast<std::uint8_t>(best[i]);
      if (w.channels % kVector == 0) {
        *reinterpret_cast<Places*>(chosen + at) = places;
      } else {
        for (int i = 0; i < g.count; ++i) chosen[at + i] = places.of[i];
      }
    });
  }
};

// Each input looks at the windows that hold it, so that nothing is added from two sides.
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
    over(c, groups_of(samples, w.in_height, w.in_width, w.channels), [&](std::size_t item) {
      const PlacedGroup g(item, w.in_height, w.in_width, w.channels);
      const int ih = static_cast<int>(g.row) + w.padding,
                iw = static_cast<int>(g.column) + w.padding;
      T* to = dx +
              ((static_cast<std::size_t>(g.sample) * w.in_height + g.row) * w.in_width + g.column) *
                  w.channels +
              g.channel;
      float sum[kVector] = {};
      if (adds) load_row(static_cast<const T*>(to), w.channels, g.count, sum);
      for (int oh = first_of(ih); oh <= ih / w.stride && oh < w.out_height; ++oh) {
        for (int ow = first_of(iw); ow <= iw / w.stride && ow < w.out_width; ++ow) {
          const int k = (ih - oh * w.stride) * w.kernel + iw - ow * w.stride;
          const std::size_t at =
              ((static_cast<std::size_t>(g.sample) * w.out_height + oh) * w.out_width + ow) *
                  w.channels +
              g.channel;
          const bool whole = w.channels % kVector == 0;
          const Packed<T> gradient = whole ? packed_at(dy + at) : packed_some(dy + at, g.count);
          const Places places = whole ? *reinterpret_cast<const Places*>(chosen + at)
                                      : places_of(chosen + at, g.count);
          float v[kVector];
          unpack(gradient, v);
          for (int i = 0; i < g.count; ++i) {
            if (places.of[i] == k) sum[i] += v[i];
          }
        }
      }
      store_row(sum, w.channels, g.count, to);
    });
  }

 private:
  PACELINE_KERNEL static Places places_of(const std::uint8_t* chosen, int count) {
    Places places = {};
    for (int i = 0; i < count; ++i) places.of[i] = chosen[i];
    return places;
  }
  // The first window that reaches a padded coordinate.
  PACELINE_KERNEL int first_of(int at) const {
    return at < w.kernel ? 0 : (at - w.kernel) / w.stride + 1;
  }
};

// The mean of each channel over its plane: a thread a channel and sample.
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

}  // namespace paceline::cuda

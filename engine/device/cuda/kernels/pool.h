// Pooling of NHWC planes.
#pragma once

#include "engine/device/cuda/kernels/context.h"

namespace paceline::cuda {

struct Window {
  int in_height, in_width, out_height, out_width;
  int kernel, stride, padding, channels;
};

// `chosen` is the place of the largest element in its window, row by row; the first of equals.
template <typename T>
struct MaxPool {
  Window w;
  const T* x;
  T* y;
  std::uint8_t* chosen;
  std::size_t samples;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const std::size_t plane = static_cast<std::size_t>(w.out_height) * w.out_width;
    over(c, samples * plane * w.channels, [&](std::size_t i) {
      const int channel = static_cast<int>(i % w.channels);
      const std::size_t place = i / w.channels;
      const int ow = static_cast<int>(place % w.out_width);
      const int oh = static_cast<int>(place / w.out_width % w.out_height);
      const std::size_t sample = place / plane;
      int best = -1;
      T largest{};
      for (int k = 0; k < w.kernel * w.kernel; ++k) {
        const int ih = oh * w.stride + k / w.kernel - w.padding;
        const int iw = ow * w.stride + k % w.kernel - w.padding;
        if (ih < 0 || ih >= w.in_height || iw < 0 || iw >= w.in_width) continue;
        const T value = x[((sample * w.in_height + ih) * w.in_width + iw) * w.channels + channel];
        if (best >= 0 && !(to_float(value) > to_float(largest))) continue;
        best = k;
        largest = value;
      }
      y[i] = largest;
      chosen[i] = static_cast<std::uint8_t>(best);
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
    const std::size_t plane = static_cast<std::size_t>(w.in_height) * w.in_width;
    over(c, samples * plane * w.channels, [&](std::size_t i) {
      const int channel = static_cast<int>(i % w.channels);
      const std::size_t place = i / w.channels;
      const int iw = static_cast<int>(place % w.in_width) + w.padding;
      const int ih = static_cast<int>(place / w.in_width % w.in_height) + w.padding;
      const std::size_t sample = place / plane;
      float sum = adds ? to_float(dx[i]) : 0;
      for (int oh = first_of(ih); oh <= ih / w.stride && oh < w.out_height; ++oh) {
        for (int ow = first_of(iw); ow <= iw / w.stride && ow < w.out_width; ++ow) {
          const int k = (ih - oh * w.stride) * w.kernel + iw - ow * w.stride;
          const std::size_t at =
              ((sample * w.out_height + oh) * w.out_width + ow) * w.channels + channel;
          if (chosen[at] == k) sum += to_float(dy[at]);
        }
      }
      dx[i] = from_float<T>(sum);
    });
  }

 private:
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

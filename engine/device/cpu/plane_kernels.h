// Loops over planes: images of height x width places, `channels` wide, without gaps. NHWC has one
// image per sample; a blocked layout has one per block of 16 channels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::cpu {

struct Window {
  int height, width;          // of the input image
  int out_height, out_width;  // of the pooled image
  int kernel, stride, padding;
  std::size_t channels;
};

template <typename T>
struct PlaneKernels {
  // `chosen` is the position of the largest element in its window, row by row; ties go to the
  // first.
  void (*max_pool)(const Window& window, const T* x, T* y, std::uint8_t* chosen);
  // Sets dx, or adds to it.
  void (*max_pool_backward)(const Window& window, const T* dy, const std::uint8_t* chosen, T* dx,
                            bool adds);
  // The mean of `rows` places, and its gradient distributed over them.
  void (*average)(const T* x, float* y, std::size_t rows, std::size_t channels);
  void (*average_backward)(const float* dy, T* dx, std::size_t rows, std::size_t channels,
                           bool adds);
  // y takes every stride-th place of x in both directions. The inverse sets dx to dy there and to
  // zero elsewhere, or adds dy there.
  void (*gather)(const Window& window, const T* x, T* y);
  void (*scatter)(const Window& window, const T* dy, T* dx, bool adds);
  void (*add)(const T* a, const T* b, T* y, std::size_t count);
  void (*relu)(const T* x, T* y, std::size_t count);
  // dx = y <= 0 ? 0 : dy, or dx += that
  void (*relu_backward)(const T* y, const T* dy, T* dx, std::size_t count, bool adds);
  // Pixels divided by 255.
  void (*cast_u8)(const std::uint8_t* x, T* y, std::size_t count);
  void (*cast_f32)(const float* x, T* y, std::size_t count);
  // The same, from NHWC to one plane of `places` per channel.
  void (*split_u8)(const std::uint8_t* x, T* y, std::size_t places, std::size_t channels);
  void (*split_f32)(const float* x, T* y, std::size_t places, std::size_t channels);
};

}  // namespace paceline::cpu

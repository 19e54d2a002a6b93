// Operations on single elements or a few neighbours.
#pragma once

#include "engine/device/cuda/kernels/context.h"

namespace paceline::cuda {

// Values in device memory that change in each step while the queued work stays the same.
struct StepValues {
  std::uint32_t epoch = 0, key_low = 0, key_high = 0;
};

// Converts pixels / 255 to a plane of `padded` channels. Additional channels and missing samples
// are zero.
template <typename T>
struct CastInput {
  const std::uint8_t* bytes;  // may be null; then:
  const float* floats;
  T* y;
  std::size_t places, missing_places;  // of all samples; after them
  int channels, padded;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, places + missing_places, [&](std::size_t place) {
      const std::size_t from = place * channels;
      for (int group = 0; group < padded; group += kVector) {
        float v[kVector];
        for (int i = 0; i < kVector; ++i) {
          const int channel = group + i;
          const bool there = place < places && channel < channels;
          v[i] = there ? value(from + channel) / 255.0F : 0;
        }
        const int left = padded - group;
        T* to = y + place * padded + group;
        if (left >= kVector && padded % kVector == 0) {
          store(v, to);
        } else {
          store_some(v, left, to);
        }
      }
    });
  }

 private:
  PACELINE_KERNEL float value(std::size_t at) const {
    return bytes ? static_cast<float>(bytes[at]) : floats[at];
  }
};

// The same with blocks of 2 x 2 pixels as one place of four times the channels, and with the
// padding of the convolution that reads it: a window of stride 2 is then one of half the size and
// stride 1 ("space to depth"). Pixel (2 row + i, 2 column + j), counted from the padding's corner,
// has the channels from (2 i + j) x channels on.
template <typename T>
struct FoldInput {
  const std::uint8_t* bytes;  // may be null; then:
  const float* floats;
  T* y;
  std::size_t samples, missing;
  int in_height, in_width, channels, padding;  // of the sample
  int height, width, padded;                   // of y

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, (samples + missing) * height * width, [&](std::size_t place) {
      const std::size_t sample = place / width / height;
      const int top = static_cast<int>(place / width % height) * 2 - padding;
      const int left = static_cast<int>(place % width) * 2 - padding;
      int part = 0, channel = 0;
      for (int group = 0; group < padded; group += kVector) {
        float v[kVector];
        for (int i = 0; i < kVector; ++i) {
          const int row = top + part / 2, column = left + part % 2;
          const bool there = part < 4 && sample < samples && row >= 0 && row < in_height &&
                             column >= 0 && column < in_width;
          v[i] = there
                     ? value(((sample * in_height + row) * in_width + column) * channels + channel)
                     : 0;
          if (++channel == channels) {
            channel = 0;
            ++part;
          }
        }
        T* to = y + place * padded + group;
        if (padded % kVector == 0) {
          store(v, to);
        } else {
          store_some(v, padded - group, to);
        }
      }
    });
  }

 private:
  PACELINE_KERNEL float value(std::size_t at) const {
    return (bytes ? static_cast<float>(bytes[at]) : floats[at]) / 255.0F;
  }
};

// y = x (+ more, which may be y).
template <typename To, typename From>
struct Convert {
  const From* x;
  To* y;
  std::size_t count;
  const To* more = nullptr;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over_vectors(c, count, [&](std::size_t first, int n) {
      float v[kVector], sum[kVector];
      load_at(x, first, n, v);
      if (more) {
        load_at(more, first, n, sum);
        for (int i = 0; i < kVector; ++i) v[i] += sum[i];
      }
      store_at(v, y, first, n);
    });
  }
};

// y += bias of the channel (+ more), and ReLU if asked.
template <typename T>
struct AddBias {
  T* y;
  const T* bias;
  std::size_t count;
  int channels;
  bool relu = false;
  const T* more = nullptr;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over_vectors(c, count, [&](std::size_t first, int n) {
      float v[kVector], b[kVector], other[kVector];
      load_at(static_cast<const T*>(y), first, n, v);
      load_channels(bias, static_cast<int>(first % channels), channels, b);
      if (more) load_at(more, first, n, other);
      for (int i = 0; i < kVector; ++i) {
        v[i] += b[i];
        if (more) v[i] += other[i];
        if (relu && v[i] < 0) v[i] = 0;
      }
      store_at(v, y, first, n);
    });
  }
};

// dx = (dx +) dy x scale where y is positive or NaN. If dy is y, this is ReLU itself.
template <typename T>
struct ReluBackward {
  const T *y, *dy;
  T* dx;
  std::size_t count;
  float scale;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over_vectors(c, count, [&](std::size_t first, int n) {
      float passed[kVector], v[kVector], sum[kVector];
      load_at(y, first, n, passed);
      load_at(dy, first, n, v);
      if (adds) load_at(static_cast<const T*>(dx), first, n, sum);
      for (int i = 0; i < kVector; ++i) {
        v[i] = passed[i] <= 0 ? 0 : v[i] * scale;
        if (adds) v[i] += sum[i];
      }
      store_at(v, dx, first, n);
    });
  }
};

// Whether dropout keeps an element; see random.h.
PACELINE_KERNEL inline bool dropout_keeps(const StepValues& step, std::uint32_t layer,
                                          std::uint32_t position, std::size_t element,
                                          std::uint32_t threshold) {
  std::uint32_t counter[4] = {static_cast<std::uint32_t>(element / 8), position, step.epoch, layer};
  std::uint32_t low = step.key_low, high = step.key_high;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    const std::uint32_t next0 = static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ low;
    const std::uint32_t next2 = static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ high;
    counter[0] = next0;
    counter[1] = static_cast<std::uint32_t>(b);
    counter[2] = next2;
    counter[3] = static_cast<std::uint32_t>(a);
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  const unsigned part = static_cast<unsigned>(element % 8);
  return (counter[part / 2] >> (part % 2 * 16) & 0xFFFFU) >= threshold;
}

// y = x x scale where dropout keeps it (optionally after ReLU); zero for the `missing` elements
// after them. `kept` (may be null) records where. x may equal y.
template <typename T>
struct Dropout {
  const T* x;
  T* y;
  std::uint8_t* kept;
  const StepValues* step;
  const std::uint32_t* positions;
  std::size_t count, missing, of_sample;
  std::uint32_t layer, threshold;
  float scale;
  bool relu;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, count + missing, [&](std::size_t i) {
      if (i >= count) {
        y[i] = from_float<T>(0);
        return;
      }
      const bool keeps =
          dropout_keeps(*step, layer, positions[i / of_sample], i % of_sample, threshold);
      if (kept) kept[i] = keeps;
      float value = to_float(x[i]);
      if (relu && value < 0) value = 0;
      y[i] = from_float<T>(keeps ? value * scale : 0);
    });
  }
};

// dx = (dx +) dy x scale where kept, for `count` elements; zero for the `missing` elements after
// them.
template <typename T>
struct DropoutBackward {
  const T* dy;
  const std::uint8_t* kept;
  T* dx;
  std::size_t count, missing;
  float scale;
  bool adds;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, count + missing, [&](std::size_t i) {
      float value = i < count && kept[i] ? to_float(dy[i]) * scale : 0;
      if (adds) value += to_float(dx[i]);
      dx[i] = from_float<T>(value);
    });
  }
};

}  // namespace paceline::cuda

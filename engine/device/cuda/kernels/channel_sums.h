// Sums over the rows of a matrix, by column, for batch normalisation and biases.
//
// A plane is a matrix of rows (samples x height x width) and channels. A *tile* is up to 16 groups
// of 8 channels. The blocks of a tile process *splits* of its rows; each thread processes 8
// channels of every n-th row. A block adds its threads' sums in shared memory, in order, and writes
// a partial. The last block of a tile to finish adds the partials of all splits, in order, in
// double. So the result does not depend on which block is last, and a single launch suffices.
#pragma once

#include "engine/device/cuda/kernels/context.h"

namespace paceline::cuda {

struct ChannelTiling {
  static constexpr int kGroups = 16, kThreads = 256;

  std::size_t rows;
  int channels;
  unsigned splits;

  PACELINE_KERNEL int groups() const { return (channels + kVector - 1) / kVector; }
  PACELINE_KERNEL int lanes() const { return groups() < kGroups ? groups() : kGroups; }
  PACELINE_KERNEL unsigned tiles() const {
    return static_cast<unsigned>((groups() + lanes() - 1) / lanes());
  }
  PACELINE_KERNEL unsigned rows_at_once() const {
    return static_cast<unsigned>(kThreads / lanes());
  }
};

// `Row::start(channel, count)` loads a thread's data for its 8 channels. `Row::fetch<whole>(row,
// channel, count)` loads a row's data for them; `whole` means that rows are whole vectors.
// `Row::add(fetched, start, sums)` adds it to the kSums sums. Several rows are fetched before the
// first is added, because waiting for each load separately would waste most of the bandwidth.
// `Row::finish(channel, sums)` receives the totals of a channel once. Row::kBlocks blocks a
// multiprocessor share the rows: more have more loads under way, and more to add up at the end.
template <typename Row>
struct ChannelSums {
  static constexpr int kSums = Row::kSums;

  ChannelTiling t;
  float* partials;     // kSums x splits x channels
  unsigned* finished;  // one counter per tile; zero before and after
  Row row;

  static constexpr std::size_t shared_bytes() {
    return sizeof(float) * kVector * ChannelTiling::kThreads;
  }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const unsigned tile = c.block() % t.tiles(), split = c.block() / t.tiles();
    const int lanes = t.lanes();
    const int lane = static_cast<int>(c.thread()) % lanes;
    const unsigned first = c.thread() / lanes, at_once = t.rows_at_once();
    const int channel = (static_cast<int>(tile) * lanes + lane) * kVector;
    const int left = t.channels - channel;
    const int count = left < kVector ? left : kVector;
    float sums[kSums][kVector] = {};
    if (first < at_once && count > 0) {
      const std::size_t begin = static_cast<std::size_t>(split) * at_once + first;
      const std::size_t stride = static_cast<std::size_t>(t.splits) * at_once;
      if (t.channels % kVector == 0) {
        add_rows<true>(begin, stride, channel, count, sums);
      } else {
        add_rows<false>(begin, stride, channel, count, sums);
      }
    }
    float* shared = c.template shared<float>();
    for (int q = 0; q < kSums; ++q) {
      for (int i = 0; i < kVector; ++i) shared[c.thread() * kVector + i] = sums[q][i];
      c.sync();
      write_partial(c, q, split, static_cast<int>(tile) * lanes * kVector, shared);
      c.sync();
    }
    finish_tile(c, tile);
  }

 private:
  template <bool kWhole>
  PACELINE_KERNEL void add_rows(std::size_t r, std::size_t stride, int channel, int count,
                                float (&sums)[kSums][kVector]) const {
    constexpr int kAhead = kWhole ? Row::kAhead : 1;
    const auto start = row.start(channel, count);
    for (; r + (kAhead - 1) * stride < t.rows; r += kAhead * stride) {
      typename Row::Fetched fetched[kAhead];
      PACELINE_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        fetched[k] = row.template fetch<kWhole>(r + k * stride, channel, count);
      }
      PACELINE_UNROLL
      for (int k = 0; k < kAhead; ++k) row.add(fetched[k], start, sums);
    }
    for (; r < t.rows; r += stride) {
      row.add(row.template fetch<kWhole>(r, channel, count), start, sums);
    }
  }

  template <typename Context>
  PACELINE_KERNEL void write_partial(Context& c, int q, unsigned split, int first_channel,
                                     const float* shared) const {
    const int width = t.lanes() * kVector;
    for (int j = static_cast<int>(c.thread()); j < width; j += static_cast<int>(c.threads())) {
      if (first_channel + j >= t.channels) continue;
      float sum = 0;
      for (unsigned r = 0; r < t.rows_at_once(); ++r) sum += shared[r * width + j];
      partials[(static_cast<std::size_t>(q) * t.splits + split) * t.channels + first_channel + j] =
          sum;
    }
  }

  template <typename Context>
  PACELINE_KERNEL void finish_tile(Context& c, unsigned tile) const {
    unsigned* last = reinterpret_cast<unsigned*>(c.template shared<float>());
    c.fence();
    c.sync();
    if (c.thread() == 0) *last = c.add_one(&finished[tile]) == t.splits - 1;
    c.sync();
    const bool mine = *last != 0;
    c.sync();
    if (!mine) return;
    c.fence();
    if (c.thread() == 0) finished[tile] = 0;
    // Adds slices of the splits in parallel, then the slices in order.
    const int width = t.lanes() * kVector;
    const unsigned slices = c.threads() / static_cast<unsigned>(width);
    double* shared = c.template shared<double>();
    const int j = static_cast<int>(c.thread()) % width;
    const unsigned slice = c.thread() / static_cast<unsigned>(width);
    const int channel = static_cast<int>(tile) * width + j;
    const bool has_channel = channel < t.channels;
    double totals[kSums] = {};
    for (int q = 0; q < kSums; ++q) {
      const float* partial =
          partials + static_cast<std::size_t>(q) * t.splits * t.channels + channel;
      shared[c.thread()] = has_channel && slice < slices ? sum_partials(partial, slice, slices) : 0;
      c.sync();
      if (slice == 0) {
        for (unsigned s = 0; s < slices; ++s)
          totals[q] += shared[s * static_cast<unsigned>(width) + static_cast<unsigned>(j)];
      }
      c.sync();
    }
    if (slice == 0 && has_channel) row.finish(channel, totals);
  }

  // Sums every n-th split, in order, fetching several at once.
  PACELINE_KERNEL double sum_partials(const float* partial, unsigned split, unsigned stride) const {
    constexpr unsigned kAhead = 8;
    const auto at = [&](unsigned s) {
      return partial[static_cast<std::size_t>(s) * static_cast<std::size_t>(t.channels)];
    };
    double sum = 0;
    for (; split + (kAhead - 1) * stride < t.splits; split += kAhead * stride) {
      float fetched[kAhead];
      for (unsigned k = 0; k < kAhead; ++k) fetched[k] = at(split + k * stride);
      for (unsigned k = 0; k < kAhead; ++k) sum += static_cast<double>(fetched[k]);
    }
    for (; split < t.splits; split += stride) sum += static_cast<double>(at(split));
    return sum;
  }
};

// Number of rows fetched at once, limited by a thread's registers.
template <typename T>
constexpr int kRowsAhead = sizeof(T) == 2 ? 4 : 2;

template <bool kWhole, typename T>
PACELINE_KERNEL inline Packed<T> packed_row(const T* from, int count) {
  return kWhole ? packed_at(from) : packed_some(from, count);
}

// The gradient of a bias: db = sum of dy.
template <typename T>
struct BiasGradient {
  static constexpr int kSums = 1, kBlocks = 3;
  const T* dy;
  float* db;
  int channels;

  static constexpr int kAhead = kRowsAhead<T>;
  struct Start {};
  using Fetched = Packed<T>;
  PACELINE_KERNEL Start start(int, int) const { return {}; }
  template <bool kWhole>
  PACELINE_KERNEL Fetched fetch(std::size_t row, int channel, int count) const {
    return packed_row<kWhole>(dy + row * channels + channel, count);
  }
  PACELINE_KERNEL void add(const Fetched& fetched, const Start&, float (&sums)[1][kVector]) const {
    float v[kVector];
    unpack(fetched, v);
    for (int i = 0; i < kVector; ++i) sums[0][i] += v[i];
  }
  PACELINE_KERNEL void finish(int channel, const double (&totals)[1]) const {
    db[channel] = static_cast<float>(totals[0]);
  }
};

}  // namespace paceline::cuda

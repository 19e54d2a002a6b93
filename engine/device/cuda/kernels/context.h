// How a kernel sees the thread that runs it. A kernel is a struct of its parameters with
//
//   template <typename Context> PACELINE_KERNEL void operator()(Context& c) const;
//
// so that the same code runs on a card (DeviceContext) and, in tests, on the host. A context has
//
//   thread(), threads(), block(), blocks()   of one dimension
//   sync()                                   all threads of the block have come here
//   shared<T>()                              the block's shared memory, Grid::shared_bytes
//   add_one(counter)                         atomic; the value before
//   fence()                                  orders what was written before and after it
#pragma once

#include <cstddef>

#include "engine/device/cuda/kernels/number.h"

namespace paceline::cuda {

#ifdef __CUDACC__
struct DeviceContext {
  __device__ unsigned thread() const { return threadIdx.x; }
  __device__ unsigned threads() const { return blockDim.x; }
  __device__ unsigned block() const { return blockIdx.x; }
  __device__ unsigned blocks() const { return gridDim.x; }
  __device__ void sync() const { __syncthreads(); }
  __device__ void fence() const { __threadfence(); }
  __device__ unsigned add_one(unsigned* counter) const { return atomicAdd(counter, 1U); }
  template <typename T>
  __device__ T* shared() const {
    extern __shared__ __align__(16) unsigned char memory[];
    return reinterpret_cast<T*>(memory);
  }
};
#endif

// Calls body(i) for this thread's share of 0 .. count - 1. Neighbouring threads get neighbouring
// indices.
template <typename Context, typename Body>
PACELINE_KERNEL inline void over(const Context& c, std::size_t count, Body body) {
  const std::size_t stride = static_cast<std::size_t>(c.blocks()) * c.threads();
  for (std::size_t i = static_cast<std::size_t>(c.block()) * c.threads() + c.thread(); i < count;
       i += stride) {
    body(i);
  }
}

// The same over vectors of kVector elements, from last to first, because recently written data is
// still in the cache. body(first element, elements).
template <typename Context, typename Body>
PACELINE_KERNEL inline void over_vectors(const Context& c, std::size_t count, Body body) {
  const std::size_t vectors = (count + kVector - 1) / kVector;
  over(c, vectors, [&](std::size_t i) {
    const std::size_t first = (vectors - 1 - i) * kVector;
    const std::size_t left = count - first;
    body(first, left < kVector ? static_cast<int>(left) : kVector);
  });
}

// The same for whole vectors of a plane with `channels`: body.start(channel), then
// body.fetch(first element) and body.finish(fetched, first element) for each. If the stride over
// all threads is a multiple of the row, a thread keeps its channels, loads their data once, and
// fetches two vectors before it uses the first.
template <typename Context, typename Body>
PACELINE_KERNEL inline void over_channels(const Context& c, std::size_t vectors, int channels,
                                          Body body) {
  const std::size_t row = static_cast<std::size_t>(channels);
  const std::size_t stride = static_cast<std::size_t>(c.blocks()) * c.threads();
  std::size_t i = static_cast<std::size_t>(c.block()) * c.threads() + c.thread();
  const auto at = [&](std::size_t index) { return (vectors - 1 - index) * kVector; };
  if (stride * kVector % row == 0 && i < vectors) {
    body.start(static_cast<int>(at(i) % row));
    for (; i + stride < vectors; i += 2 * stride) {
      const auto one = body.fetch(at(i)), other = body.fetch(at(i + stride));
      body.finish(one, at(i));
      body.finish(other, at(i + stride));
    }
  }
  for (; i < vectors; i += stride) {
    body.start(static_cast<int>(at(i) % row));
    body.finish(body.fetch(at(i)), at(i));
  }
}

// Loads 8 channels starting at `channel`, wrapping around.
template <typename T>
PACELINE_KERNEL inline void load_channels(const T* of_channel, int channel, int channels,
                                          float (&to)[kVector]) {
  if (channels % kVector == 0) return load(of_channel + channel, to);
  for (int i = 0; i < kVector; ++i) {
    to[i] = to_float(of_channel[channel]);
    if (++channel == channels) channel = 0;
  }
}

template <typename T>
PACELINE_KERNEL inline void load_at(const T* data, std::size_t first, int count,
                                    float (&to)[kVector]) {
  if (count == kVector) {
    load(data + first, to);
  } else {
    load_some(data + first, count, to);
  }
}

template <typename T>
PACELINE_KERNEL inline void store_at(const float (&from)[kVector], T* data, std::size_t first,
                                     int count) {
  if (count == kVector) {
    store(from, data + first);
  } else {
    store_some(from, count, data + first);
  }
}

// Channels of a row, as a vector if rows are whole vectors.
template <typename T>
PACELINE_KERNEL inline void load_row(const T* from, int channels, int count, float (&to)[kVector]) {
  if (channels % kVector == 0) {
    load(from, to);
  } else {
    load_some(from, count, to);
  }
}

template <typename T>
PACELINE_KERNEL inline void store_row(const float (&from)[kVector], int channels, int count,
                                      T* to) {
  if (channels % kVector == 0) {
    store(from, to);
  } else {
    store_some(from, count, to);
  }
}

// Calls body(first channel, channels) for this thread's vectors of the block's only row.
template <typename Context, typename Body>
PACELINE_KERNEL inline void over_row(const Context& c, int channels, Body body) {
  const int step = static_cast<int>(c.threads()) * kVector;
  for (int first = static_cast<int>(c.thread()) * kVector; first < channels; first += step) {
    const int left = channels - first;
    body(first, left < kVector ? left : kVector);
  }
}

}  // namespace paceline::cuda

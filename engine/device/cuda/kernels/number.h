// Loading and storing of 16-bit floats in kernels; arithmetic is in float.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define PACELINE_KERNEL __device__
#else
#include "engine/core/half.h"
#define PACELINE_KERNEL
#endif

namespace paceline::cuda {

struct Bf16 {
  std::uint16_t bits;
};
struct Half {
  std::uint16_t bits;
};

PACELINE_KERNEL inline float to_float(float value) {
  return value;
}
PACELINE_KERNEL inline float to_float(Bf16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}
PACELINE_KERNEL inline float to_float(Half value) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(value.bits));
#else
  float result;
  from_f16(&value.bits, &result, 1);
  return result;
#endif
}

template <typename T>
PACELINE_KERNEL inline T from_float(float value);

template <>
PACELINE_KERNEL inline float from_float<float>(float value) {
  return value;
}
template <>
PACELINE_KERNEL inline Bf16 from_float<Bf16>(float value) {
#ifdef __CUDACC__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
  Bf16 result;
  to_bf16(&value, &result.bits, 1);
  return result;
#endif
}
template <>
PACELINE_KERNEL inline Half from_float<Half>(float value) {
#ifdef __CUDACC__
  return {__half_as_ushort(__float2half_rn(value))};
#else
  Half result;
  to_f16(&value, &result.bits, 1);
  return result;
#endif
}

// Eight consecutive elements: one or two 16-byte accesses.
constexpr int kVector = 8;

template <typename T>
struct alignas(16) Packed {
  T values[kVector];
};

// The raw loaded data, so that kernels can start several loads before using the first.
template <typename T>
PACELINE_KERNEL inline Packed<T> packed_at(const T* from) {
  return *reinterpret_cast<const Packed<T>*>(from);
}

template <typename T>
PACELINE_KERNEL inline void unpack(const Packed<T>& packed, float (&to)[kVector]) {
  for (int i = 0; i < kVector; ++i) to[i] = to_float(packed.values[i]);
}

template <typename T>
PACELINE_KERNEL inline void load(const T* from, float (&to)[kVector]) {
  unpack(packed_at(from), to);
}

template <typename T>
PACELINE_KERNEL inline void store(const float (&from)[kVector], T* to) {
  Packed<T> packed;
  for (int i = 0; i < kVector; ++i) packed.values[i] = from_float<T>(from[i]);
  *reinterpret_cast<Packed<T>*>(to) = packed;
}

// The same for the first `count` of them. The others are read as zero and not written.
template <typename T>
PACELINE_KERNEL inline void load_some(const T* from, int count, float (&to)[kVector]) {
  for (int i = 0; i < kVector; ++i) to[i] = i < count ? to_float(from[i]) : 0;
}

template <typename T>
PACELINE_KERNEL inline Packed<T> packed_some(const T* from, int count) {
  Packed<T> packed = {};
  for (int i = 0; i < kVector; ++i) {
    if (i < count) packed.values[i] = from[i];
  }
  return packed;
}

template <typename T>
PACELINE_KERNEL inline void store_some(const float (&from)[kVector], int count, T* to) {
  for (int i = 0; i < kVector; ++i) {
    if (i < count) to[i] = from_float<T>(from[i]);
  }
}

}  // namespace paceline::cuda

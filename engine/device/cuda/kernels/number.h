// Loading and storing of 16-bit floats in kernels; arithmetic is in float.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define PACELINE_KERNEL __device__
// Before a loop over an array that is to stay in registers, where the compiler might not.
#define PACELINE_UNROLL _Pragma("unroll")
#else
#include "engine/core/dtype.h"
#define PACELINE_KERNEL
#define PACELINE_UNROLL
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

// What a card makes of any NaN in 16 bits.
constexpr std::uint16_t kNaN = 0x7FFF;

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
  if (value != value) return {kNaN};
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
  if (value != value) return {kNaN};
  Half result;
  to_f16(&value, &result.bits, 1);
  return result;
#endif
}

// Two 16-bit elements as a word, the first in its lower half. Hardware converts pairs, and lanes of
// 16 bits in registers of their own would cost an instruction each to take apart and put together.
PACELINE_KERNEL inline void widen(Bf16, std::uint32_t word, float& low, float& high) {
  const std::uint32_t of_low = word << 16, of_high = word & 0xFFFF0000U;
  memcpy(&low, &of_low, sizeof low);
  memcpy(&high, &of_high, sizeof high);
}
PACELINE_KERNEL inline void widen(Half, std::uint32_t word, float& low, float& high) {
  low = to_float(Half{static_cast<std::uint16_t>(word)});
  high = to_float(Half{static_cast<std::uint16_t>(word >> 16)});
}
template <typename T>
PACELINE_KERNEL inline std::uint32_t narrow(float low, float high) {
  return from_float<T>(low).bits | static_cast<std::uint32_t>(from_float<T>(high).bits) << 16;
}
#ifdef __CUDACC__
template <>
PACELINE_KERNEL inline std::uint32_t narrow<Bf16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  std::uint32_t word;
  memcpy(&word, &pair, sizeof word);
  return word;
}
template <>
PACELINE_KERNEL inline std::uint32_t narrow<Half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  std::uint32_t word;
  memcpy(&word, &pair, sizeof word);
  return word;
}
#endif

// exp(x) and 1 / x in a few instructions. On a card the error of exp grows with |x|, to about
// 2 + 1.2 |x| units in the last place, and the inverse of what is above 2^126 is 0.
PACELINE_KERNEL inline float fast_exp(float x) {
#ifdef __CUDACC__
  return __expf(x);
#else
  return std::exp(x);
#endif
}
PACELINE_KERNEL inline float fast_inverse(float x) {
#ifdef __CUDACC__
  return __fdividef(1, x);
#else
  return 1 / x;
#endif
}

// Eight consecutive elements: one or two 16-byte accesses.
constexpr int kVector = 8;

template <typename T>
struct alignas(16) Packed {
  std::uint32_t words[kVector / 2];
};
template <>
struct alignas(16) Packed<float> {
  float values[kVector];
};

// The raw loaded data, so that kernels can start several loads before using the first.
template <typename T>
PACELINE_KERNEL inline Packed<T> packed_at(const T* from) {
  return *reinterpret_cast<const Packed<T>*>(from);
}

template <typename T>
PACELINE_KERNEL inline void unpack(const Packed<T>& packed, float (&to)[kVector]) {
  for (int i = 0; i < kVector / 2; ++i) widen(T{}, packed.words[i], to[2 * i], to[2 * i + 1]);
}
PACELINE_KERNEL inline void unpack(const Packed<float>& packed, float (&to)[kVector]) {
  for (int i = 0; i < kVector; ++i) to[i] = packed.values[i];
}

template <typename T>
PACELINE_KERNEL inline Packed<T> pack(const float (&from)[kVector]) {
  Packed<T> packed;
  if constexpr (sizeof(T) == sizeof(float)) {
    for (int i = 0; i < kVector; ++i) packed.values[i] = from[i];
  } else {
    for (int i = 0; i < kVector / 2; ++i) packed.words[i] = narrow<T>(from[2 * i], from[2 * i + 1]);
  }
  return packed;
}

template <typename T>
PACELINE_KERNEL inline void load(const T* from, float (&to)[kVector]) {
  unpack(packed_at(from), to);
}

template <typename T>
PACELINE_KERNEL inline void put(const Packed<T>& packed, T* to) {
  *reinterpret_cast<Packed<T>*>(to) = packed;
}

template <typename T>
PACELINE_KERNEL inline void store(const float (&from)[kVector], T* to) {
  put(pack<T>(from), to);
}

// The same for the first `count` of them. The others are read as zero and not written.
template <typename T>
PACELINE_KERNEL inline void load_some(const T* from, int count, float (&to)[kVector]) {
  for (int i = 0; i < kVector; ++i) to[i] = i < count ? to_float(from[i]) : 0;
}

template <typename T>
PACELINE_KERNEL inline Packed<T> packed_some(const T* from, int count) {
  float values[kVector];
  load_some(from, count, values);
  return pack<T>(values);  // exact
}

template <typename T>
PACELINE_KERNEL inline Packed<T> packed_vector(const T* from, int count) {
  return count == kVector ? packed_at(from) : packed_some(from, count);
}

template <typename T>
PACELINE_KERNEL inline void store_some(const float (&from)[kVector], int count, T* to) {
  for (int i = 0; i < kVector; ++i) {
    if (i < count) to[i] = from_float<T>(from[i]);
  }
}

}  // namespace paceline::cuda

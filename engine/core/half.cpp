#include <bit>

#include "engine/core/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace paceline {

namespace {

inline __attribute__((always_inline)) std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

inline __attribute__((always_inline)) void to_bf16_loop(const float* __restrict from,
                                                        std::uint16_t* __restrict to,
                                                        std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = bf16_of(from[i]);
}

inline __attribute__((always_inline)) void from_bf16_loop(const std::uint16_t* __restrict from,
                                                          float* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
  }
}

std::uint16_t f16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  }
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // 65520 and above round to infinity
  if (magnitude < 0x38800000U) {
    // Subnormal: adding 0.5 lets the hardware round at 2^-24, the smallest step of binary16.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3f000000U));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1U;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + odd) >> 13));
}

float f16_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU, fraction = half & 0x3ffU;
  if (exponent == 0x1f) {
    const std::uint32_t quiet = fraction != 0 ? 0x400000U : 0;
    return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13) | quiet);
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
}

#if defined(__x86_64__)

// Every processor with AVX2 has F16C too (x86-64-v3), by which clang 14 cannot ask.
bool has_avx2() {
  return __builtin_cpu_supports("avx2");
}

[[gnu::target("avx2")]] void to_bf16_avx2(const float* from, std::uint16_t* to, std::size_t count) {
  to_bf16_loop(from, to, count);
}

[[gnu::target("avx2")]] void from_bf16_avx2(const std::uint16_t* from, float* to,
                                            std::size_t count) {
  from_bf16_loop(from, to, count);
}

[[gnu::target("avx2,f16c")]] std::size_t to_f16_avx2(const float* from, std::uint16_t* to,
                                                     std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

[[gnu::target("avx2,f16c")]] std::size_t from_f16_avx2(const std::uint16_t* from, float* to,
                                                       std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  return i;
}

#elif defined(__aarch64__)

std::size_t to_f16_neon(const float* from, std::uint16_t* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from + i))));
  }
  return i;
}

std::size_t from_f16_neon(const std::uint16_t* from, float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
  }
  return i;
}

#endif

}  // namespace

void to_bf16(const float* from, std::uint16_t* to, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx2()) return to_bf16_avx2(from, to, count);
#endif
  to_bf16_loop(from, to, count);
}

void from_bf16(const std::uint16_t* from, float* to, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx2()) return from_bf16_avx2(from, to, count);
#endif
  from_bf16_loop(from, to, count);
}

void to_f16(const float* from, std::uint16_t* to, std::size_t count) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_avx2()) done = to_f16_avx2(from, to, count);
#elif defined(__aarch64__)
  done = to_f16_neon(from, to, count);
#endif
  for (; done < count; ++done) to[done] = f16_of(from[done]);
}

void from_f16(const std::uint16_t* from, float* to, std::size_t count) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_avx2()) done = from_f16_avx2(from, to, count);
#elif defined(__aarch64__)
  done = from_f16_neon(from, to, count);
#endif
  for (; done < count; ++done) to[done] = f16_to_float(from[done]);
}

}  // namespace paceline

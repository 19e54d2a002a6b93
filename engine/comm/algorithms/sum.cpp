#include "engine/comm/algorithms/sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr std::size_t kBlock = 1024;  // elements: a block of fp32 stays in the first-level cache

// The same loop for the vectors that every x86-64 has and for wider ones.
#if defined(__x86_64__)
#define PACELINE_WIDE [[gnu::target("avx2")]]
bool wide() {
  return __builtin_cpu_supports("avx2");
}
#else
#define PACELINE_WIDE
bool wide() {
  return false;
}
#endif

template <typename T>
inline __attribute__((always_inline)) void add_loop(T* __restrict to, const T* __restrict from,
                                                    std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

template <typename T>
PACELINE_WIDE void add_wide(T* to, const T* from, std::size_t count) {
  add_loop(to, from, count);
}

template <typename T>
void add(T* to, const T* from, std::size_t count) {
  wide() ? add_wide(to, from, count) : add_loop(to, from, count);
}

template <typename T>
inline __attribute__((always_inline)) void pair_loop(T* __restrict a, T* __restrict b,
                                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const T sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

template <typename T>
PACELINE_WIDE void pair_wide(T* a, T* b, std::size_t count) {
  pair_loop(a, b, count);
}

template <typename T>
void add_pair(T* a, T* b, std::size_t count) {
  wide() ? pair_wide(a, b, count) : pair_loop(a, b, count);
}

template <typename T>
void sum_exact(std::span<std::byte* const> parts, std::size_t written, std::size_t begin,
               std::size_t end) {
  const auto part = [&](std::size_t r) { return reinterpret_cast<T*>(parts[r]); };
  if (parts.size() == 2 && written == 2)
    return add_pair(part(0) + begin, part(1) + begin, end - begin);
  std::array<T, kBlock> sum;
  for (std::size_t at = begin; at < end; at += kBlock) {
    const std::size_t n = std::min(kBlock, end - at);
    std::copy_n(part(0) + at, n, sum.data());
    for (std::size_t r = 1; r < parts.size(); ++r) add<T>(sum.data(), part(r) + at, n);
    for (std::size_t r = 0; r < written; ++r) std::copy_n(sum.data(), n, part(r) + at);
  }
}

using Widen = void (*)(const std::uint16_t*, float*, std::size_t);
using Narrow = void (*)(const float*, std::uint16_t*, std::size_t);

void sum_in_fp32(std::span<std::byte* const> parts, std::size_t written, std::size_t begin,
                 std::size_t end, Widen widen, Narrow narrow) {
  const auto part = [&](std::size_t r) { return reinterpret_cast<std::uint16_t*>(parts[r]); };
  std::array<float, kBlock> sum, other;
  for (std::size_t at = begin; at < end; at += kBlock) {
    const std::size_t n = std::min(kBlock, end - at);
    widen(part(0) + at, sum.data(), n);
    for (std::size_t r = 1; r < parts.size(); ++r) {
      widen(part(r) + at, other.data(), n);
      add(sum.data(), other.data(), n);
    }
    narrow(sum.data(), part(0) + at, n);
    for (std::size_t r = 1; r < written; ++r) std::copy_n(part(0) + at, n, part(r) + at);
  }
}

}  // namespace

void check_summable(DType type) {
  if (type != DType::u8 && type != DType::i32) return;
  throw internal_error(fmt::format("no all-reduce of elements of type {}", to_string(type)));
}

void sum_parts(std::span<std::byte* const> parts, std::size_t written, std::size_t begin,
               std::size_t end, DType type) {
  switch (type) {
    case DType::f32:
      return sum_exact<float>(parts, written, begin, end);
    case DType::f64:
      return sum_exact<double>(parts, written, begin, end);
    case DType::bf16:
      return sum_in_fp32(parts, written, begin, end, from_bf16, to_bf16);
    case DType::f16:
      return sum_in_fp32(parts, written, begin, end, from_f16, to_f16);
    case DType::u8:
    case DType::i32:
      return check_summable(type);
  }
}

void add_to(std::byte* to, const std::byte* from, std::size_t count, DType type) {
  const std::array<std::byte*, 2> parts = {
      to, const_cast<std::byte*>(from)};  // only parts[0] is written
  if (type == DType::f32) {
    return add(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from), count);
  }
  sum_parts(parts, 1, 0, count, type);
}

}  // namespace paceline

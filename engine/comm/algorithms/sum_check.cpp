#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/comm/algorithms/sum.h"
#include "engine/core/dtype.h"

namespace paceline {

namespace {

constexpr std::size_t kBlock = 1024;
constexpr std::uint32_t kValues = 7;
constexpr float kLeast = -2;  // to 4: a sum over any number of ranks differs from 0 somewhere

// Spreads neighbouring offsets, so that a shifted or swapped piece does not look right.
std::uint32_t mixed(std::size_t offset) {
  return (static_cast<std::uint32_t>(offset) * 2654435761U) >> 20;
}

float test_value(std::uint32_t mixed_offset, int rank) {
  return static_cast<float>((mixed_offset + 3 * static_cast<std::uint32_t>(rank)) % kValues) +
         kLeast;
}

// By what mixed(offset) leaves when divided: the same for all offsets that agree in it.
std::array<float, kValues> expected_sums(int ranks) {
  std::array<float, kValues> sums{};
  for (std::uint32_t left = 0; left < kValues; ++left) {
    for (int rank = 0; rank < ranks; ++rank) sums[left] += test_value(left, rank);
  }
  return sums;
}

void store(const float* from, void* data, std::size_t at, std::size_t count, DType type) {
  switch (type) {
    case DType::f32:
      std::copy_n(from, count, static_cast<float*>(data) + at);
      return;
    case DType::f64:
      std::copy_n(from, count, static_cast<double*>(data) + at);
      return;
    case DType::bf16:
      return to_bf16(from, static_cast<std::uint16_t*>(data) + at, count);
    case DType::f16:
      return to_f16(from, static_cast<std::uint16_t*>(data) + at, count);
    case DType::u8:
    case DType::i32:
      return check_summable(type);
  }
}

void load(const void* data, std::size_t at, float* to, std::size_t count, DType type) {
  switch (type) {
    case DType::f32:
      std::copy_n(static_cast<const float*>(data) + at, count, to);
      return;
    case DType::f64:
      std::transform(static_cast<const double*>(data) + at,
                     static_cast<const double*>(data) + at + count, to,
                     [](double value) { return static_cast<float>(value); });
      return;
    case DType::bf16:
      return from_bf16(static_cast<const std::uint16_t*>(data) + at, to, count);
    case DType::f16:
      return from_f16(static_cast<const std::uint16_t*>(data) + at, to, count);
    case DType::u8:
    case DType::i32:
      return check_summable(type);
  }
}

}  // namespace

void fill_for_check(void* data, std::size_t count, DType type, int rank) {
  std::array<float, kBlock> block;
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t n = std::min(kBlock, count - at);
    for (std::size_t i = 0; i < n; ++i) block[i] = test_value(mixed(at + i), rank);
    store(block.data(), data, at, n, type);
  }
}

SumCheck check_sum(const void* data, std::size_t count, DType type, int ranks) {
  const auto sums = expected_sums(ranks);
  SumCheck check;
  std::array<float, kBlock> block;
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t n = std::min(kBlock, count - at);
    load(data, at, block.data(), n, type);
    for (std::size_t i = 0; i < n; ++i) {
      const float expected = sums[mixed(at + i) % kValues];
      if (block[i] == expected) continue;
      if (check.wrong++ == 0) {
        check.first_offset = at + i;
        check.got = block[i];
        check.expected = expected;
      }
    }
  }
  return check;
}

std::string describe(const SumCheck& check, std::size_t count, DType type, int rank) {
  return fmt::format(
      "rank {}: {} of {} elements of {} are wrong, the first at offset {}: {}, not {}", rank,
      check.wrong, count, to_string(type), check.first_offset, check.got, check.expected);
}

}  // namespace paceline

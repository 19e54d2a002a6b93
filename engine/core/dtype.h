// Element types of tensors and of collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/core/text.h"

namespace paceline {

enum class DType : std::uint8_t { u8, i32, f16, bf16, f32, f64 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::u8:
      return 1;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i32:
    case DType::f32:
      return 4;
    case DType::f64:
      return 8;
  }
  return 0;
}

inline constexpr EnumName<DType> kDTypeNames[] = {{DType::u8, "u8"},   {DType::i32, "i32"},
                                                  {DType::f16, "f16"}, {DType::bf16, "bf16"},
                                                  {DType::f32, "f32"}, {DType::f64, "f64"}};

constexpr std::string_view to_string(DType type) {
  return name_in(kDTypeNames, type);
}

// Converts arrays of 16-bit floats from and to fp32. Rounds to nearest, ties to even. NaN stays a
// quiet NaN.
//
// bf16 is the upper half of an IEEE binary32: same range, 8 bits of precision. f16 is IEEE
// binary16: 11 bits of precision; values above 65504 become infinity.

void to_bf16(const float* from, std::uint16_t* to, std::size_t count);
void from_bf16(const std::uint16_t* from, float* to, std::size_t count);
void to_f16(const float* from, std::uint16_t* to, std::size_t count);
void from_f16(const std::uint16_t* from, float* to, std::size_t count);

}  // namespace paceline

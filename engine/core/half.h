// Converts arrays of 16-bit floats from and to fp32. Rounds to nearest, ties to even. NaN stays a
// quiet NaN.
//
// bf16 is the upper half of an IEEE binary32: same range, 8 bits of precision. f16 is IEEE
// binary16: 11 bits of precision; values above 65504 become infinity.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

void to_bf16(const float* from, std::uint16_t* to, std::size_t count);
void from_bf16(const std::uint16_t* from, float* to, std::size_t count);
void to_f16(const float* from, std::uint16_t* to, std::size_t count);
void from_f16(const std::uint16_t* from, float* to, std::size_t count);

}  // namespace paceline

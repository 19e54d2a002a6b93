// Element types of tensors and of collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

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

constexpr std::string_view to_string(DType type) {
  switch (type) {
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
  }
  return "?";
}

}  // namespace paceline

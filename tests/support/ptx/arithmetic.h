// What instructions compute, as functions of their operands.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/core/dtype.h"

namespace paceline::ptx {

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S8 = std::int8_t;
using S16 = std::int16_t;
using S32 = std::int32_t;
using S64 = std::int64_t;

struct Plus {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Minus {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a - b);
  }
};
struct Times {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      return static_cast<T>(U64{a} * U64{b});
    }
  }
};
struct TimesPlus {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(U64{a} * U64{b} + U64{c});
  }
};
template <typename Wide>
struct WideTimes {
  template <typename T>
  Wide operator()(T a, T b) const {
    return Wide{a} * Wide{b};
  }
};
template <typename Wide>
struct HighTimes {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>((Wide{a} * Wide{b}) >> 32);
  }
};
// By zero and where a quotient has no place: any bits.
template <bool kRest>
struct Divide {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (b == 0) return static_cast<T>(-1);
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
        return kRest ? 0 : static_cast<T>(U64{0} - static_cast<U64>(a));
      }
      return static_cast<T>(kRest ? a % b : a / b);
    }
  }
};
template <bool kMost>
struct Extreme {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return kMost ? std::fmax(a, b) : std::fmin(a, b);
    } else {
      return (a < b) == kMost ? b : a;
    }
  }
};
struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct NotPredicate {
  U8 operator()(U8 a) const { return a == 0; }
};
struct Negative {
  template <typename T>
  T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>) {
      return -a;
    } else {
      return static_cast<T>(U64{0} - U64{a});
    }
  }
};
struct Absolute {
  template <typename T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
struct Root {
  template <typename T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct Inverse {
  template <typename T>
  T operator()(T a) const {
    return 1 / a;
  }
};
struct PowerOfTwo {
  float operator()(float a) const { return std::exp2(a); }
};
struct LogOfTwo {
  float operator()(float a) const { return std::log2(a); }
};
struct Fused {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
// Rounded down; the product is exact in double.
struct FusedDown {
  float operator()(float a, float b, float c) const {
    const double exact = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
    const auto nearest = static_cast<float>(exact);
    if (static_cast<double>(nearest) <= exact) return nearest;
    return std::nextafter(nearest, -std::numeric_limits<float>::infinity());
  }
};
struct ToHalf {
  U16 operator()(float a) const {
    U16 bits = 0;
    to_f16(&a, &bits, 1);
    return bits;
  }
};
struct FromHalf {
  float operator()(U16 bits) const {
    float value = 0;
    from_f16(&bits, &value, 1);
    return value;
  }
};
struct ToBf16 {
  U16 operator()(float a) const {
    U16 bits = 0;
    to_bf16(&a, &bits, 1);
    return bits;
  }
};
// The first operand is the upper half.
template <typename F>
struct Pair {
  U32 operator()(float high, float low) const { return U32{F{}(high)} << 16 | F{}(low); }
};
struct Saturate {
  float operator()(float a) const { return a > 0 ? std::fmin(a, 1.0F) : 0; }
};

}  // namespace paceline::ptx

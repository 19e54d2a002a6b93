// Constraints on members of the run record, given with their keys.
//
// Each struct in this folder lists its members once: fields() calls each(key, member[, bounds]) for
// every member, in file order. Writing, reading and checking of records use this list. `beside`:
// the keys of a nested struct are inlined. `loss`: NaN is written as null. `always`: written even
// if empty.
#pragma once

#include <limits>

namespace paceline {

struct Bounds {
  double least = 0;
  bool above = false;     // `least` itself is not allowed
  bool share = false;     // from 0 to 1
  bool required = false;  // the record is rejected without it
};

inline constexpr Bounds kAny{.least = -std::numeric_limits<double>::infinity()};
inline constexpr Bounds kShare{.share = true};
inline constexpr Bounds kPositive{.above = true};
inline constexpr Bounds kCount{.least = 1};
inline constexpr Bounds kRequired{.required = true};
inline constexpr Bounds kRequiredCount{.least = 1, .required = true};
inline constexpr Bounds kRequiredPositive{.above = true, .required = true};

}  // namespace paceline

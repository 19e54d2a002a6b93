// What a member of the run record may be, given beside its key.
//
// Each struct of this folder lists its members once: fields() calls each(key, member[, bounds]) for
// every one in the order of the file, and records are written, read and checked by that. `beside`:
// a struct whose keys stand among those around it. `loss`: NaN is written as null. `always`:
// written even where it is empty.
#pragma once

#include <limits>

namespace paceline {

struct Bounds {
  double least = 0;
  bool above = false;     // `least` itself is too small
  bool share = false;     // from 0 to 1
  bool required = false;  // a record without it is refused
};

inline constexpr Bounds kAny{.least = -std::numeric_limits<double>::infinity()};
inline constexpr Bounds kShare{.share = true};
inline constexpr Bounds kPositive{.above = true};
inline constexpr Bounds kCount{.least = 1};
inline constexpr Bounds kRequired{.required = true};
inline constexpr Bounds kRequiredCount{.least = 1, .required = true};
inline constexpr Bounds kRequiredPositive{.above = true, .required = true};

}  // namespace paceline

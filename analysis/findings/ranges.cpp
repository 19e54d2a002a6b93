#include "analysis/findings/ranges.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/study/comparison.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// "16 to 18 %", and the hull behind it.
std::string hull_text(const Hull& hull, int digits, double scale, const char* unit) {
  const std::string text = range_text(hull.values, digits, scale) + unit;
  if (!hull.is_known) return text;
  return text + fmt::format(" [{:.{}f}, {:.{}f}]", hull.intervals.low * scale, digits,
                            hull.intervals.high * scale, digits);
}

}  // namespace

void Hull::add(const Judged& judged) {
  values.add(judged.value());
  judged.match(
      [&](const Known& known) {
        intervals.add(known.interval.low);
        intervals.add(known.interval.high);
      },
      [&](double, const WeakEvidence&) { is_known = false; });
}

std::string range_text(const Range& range, int digits, double scale) {
  const std::string low = fmt::format("{:.{}f}", range.low * scale, digits);
  const std::string high = fmt::format("{:.{}f}", range.high * scale, digits);
  return low == high ? low : low + " to " + high;
}

std::string fractions_text(const Hull& hull) {
  int digits = fraction_digits(hull.largest());
  if (hull.is_known && hull.intervals.width() > 0) {
    const double half = hull.intervals.width() / 2;
    digits = std::clamp(decimals_for(half, 2), 2, std::max(2, digits));
  }
  return hull_text(hull, digits, 1, "");
}

std::string percent_text(const Hull& hull) {
  const double size = hull.is_known ? hull.intervals.width() : hull.largest();
  const auto [fine, finer] = hull.is_known ? std::pair(0.05, 0.002) : std::pair(0.1, 0.02);
  const bool is_exact = hull.is_known && size < kRounding;
  const int digits = is_exact ? 1 : size < finer ? 2 : size < fine ? 1 : 0;
  return hull_text(hull, digits, 100, " %");
}

}  // namespace paceline

#include "analysis/document/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/text.h"

namespace paceline {

namespace {

// 31250.5 is 31,250.5; with -2 digits, 31,300.
std::string rounded(double value, int digits) {
  const double unit = std::pow(10.0, -digits);
  std::string text =
      digits < 0 ? decimal(std::round(value / unit) * unit, 0) : decimal(value, digits);
  if (text.find_first_of("123456789") == std::string::npos && text.starts_with('-'))
    text.erase(0, 1);
  const std::size_t begin = text.starts_with('-') ? 1 : 0;
  std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
  if (end - begin < 5) return text;
  while (end > begin + 3) text.insert(end -= 3, ",");
  return text;
}

// A margin that is not zero never reads as zero. Of equal runs there is none: that they are equal
// does not show how exact they are.
std::string margin(double half_width, double value, int digits) {
  if (half_width <= kRounding * std::abs(value)) return "";
  while (digits < 9 && half_width < 0.5 * std::pow(10.0, -digits)) ++digits;
  return " ±" + rounded(half_width, digits);
}

// Two digits of the margin: the value bears no more.
int supported_digits(double half_width, double value, int digits) {
  if (!std::isfinite(half_width) || half_width <= kRounding * std::abs(value)) return digits;
  return std::min(digits, 1 - static_cast<int>(std::floor(std::log10(half_width))));
}

}  // namespace

int count_digits(double value, bool exact) {
  if (exact && value == std::floor(value)) return 0;
  const double magnitude = std::abs(value);
  if (magnitude > 0 && magnitude < 0.1) return decimals_for(magnitude, 3);
  return magnitude >= 1000 ? 0 : magnitude >= 100 ? 1 : magnitude >= 10 ? 2 : 3;
}

Cell number(std::optional<double> value, int digits) {
  if (!value) return {};
  return {rounded(*value, digits), value};
}

Cell whole(std::optional<std::int64_t> value) {
  if (!value) return {};
  return {std::to_string(*value), static_cast<double>(*value)};
}

Cell percent(std::optional<double> share, int digits) {
  if (!share) return {};
  return {decimal(*share * 100, digits) + " %", share};
}

Cell percent_estimate(const std::optional<Estimate>& share, int digits) {
  if (!share) return {};
  Cell cell = estimate_cell(transformed(*share, [](double each) { return each * 100; }), digits);
  cell.text += " %";
  cell.value = share->value;
  cell.interval = share->interval;
  return cell;
}

Cell estimate_cell(const Estimate& estimate, int digits, double exact) {
  if (!estimate.interval) return number(estimate.value, digits);
  const auto [low, high] = *estimate.interval;
  const double half_width = std::max(high - estimate.value, estimate.value - low);
  digits = supported_digits(exact > 0 ? exact : half_width, estimate.value, digits);
  // A time or a rate is above zero, however wide its interval.
  if (low > 0) digits = std::max(digits, -static_cast<int>(std::floor(std::log10(estimate.value))));
  const std::string interval =
      half_width > kWideMargin * std::abs(estimate.value)
          ? fmt::format(" [{}, {}]", rounded(low, digits), rounded(high, digits))
          : margin(half_width, estimate.value, digits);
  return {rounded(estimate.value, digits) + interval, estimate.value, estimate.interval};
}

Cell measured_cell(const std::optional<Estimate>& value) {
  if (!value) return {};
  return estimate_cell(*value, count_digits(value->value, value->count == 1));
}

}  // namespace paceline

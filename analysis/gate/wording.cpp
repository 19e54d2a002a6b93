#include "analysis/gate/wording.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/core/text.h"

namespace paceline {

std::string change_text(double change, const QuantityInfo& info) {
  return info.is_factor ? decimal(std::abs(change) * 100, 1) + " %" : decimal(std::abs(change), 3);
}

// More of what is less good reads as a minus: an accuracy that falls by 0.02 is -0.020.
std::string signed_change_text(double change, const QuantityInfo& info) {
  const double shown = info.more_is_worse ? change : -change;
  return (shown < 0 ? "-" : "+") + change_text(shown, info);
}

std::string value_text(double value, const QuantityInfo& info) {
  if (info.quantity == Quantity::time) return format_seconds(value);
  if (info.quantity == Quantity::accuracy) return decimal(value * 100, 2) + " %";
  return fmt::format("{:.3g}", value);
}

std::string p_text(double p) {
  return p < 0.0001 ? "< 0.0001" : fmt::format("{:.2g}", p);
}

std::string p_phrase(double p) {
  return (p < 0.0001 ? "p " : "p = ") + p_text(p);
}

const char* worse_word(const QuantityInfo& info) {
  if (info.quantity == Quantity::time) return "slower";
  return info.more_is_worse ? "higher" : "lower";
}

}  // namespace paceline

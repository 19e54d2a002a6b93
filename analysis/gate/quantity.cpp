#include "analysis/gate/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/study/comparison.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

const std::vector<QuantityInfo>& quantities() {
  static const std::vector<QuantityInfo> table = {
      {Quantity::time, "time", "time", true, true, true, 0.025},
      {Quantity::serial_fraction, "serial_fraction", "Karp-Flatt", false, true, true, 0.05},
      {Quantity::communication, "communication", "exposed comm.", false, true, true, 0.05},
      {Quantity::loss, "loss", "training loss", true, true, false, kLossTolerance},
      {Quantity::accuracy, "accuracy", "test accuracy", false, false, false, kAccuracyTolerance},
  };
  return table;
}

const QuantityInfo& quantity_info(Quantity quantity) {
  return *std::find_if(quantities().begin(), quantities().end(),
                       [&](const QuantityInfo& info) { return info.quantity == quantity; });
}

Quantity parse_quantity(const std::string& key, const std::string& option) {
  return row_named(quantities(), &QuantityInfo::key, key, "quantity", option).quantity;
}

Thresholds default_thresholds() {
  Thresholds thresholds;
  for (const QuantityInfo& info : quantities()) thresholds[info.quantity] = info.threshold;
  return thresholds;
}

double parse_threshold(const std::string& given, const std::string& option, const char* noun,
                       ShareBounds bounds) {
  const std::string text(trim(given));
  const bool percent = text.ends_with("%");
  const auto number = to_real(trim(percent ? text.substr(0, text.size() - 1) : text));
  const double share = number ? *number / (percent ? 100 : 1) : 0;
  if (number && !percent && *number >= 1) {
    throw usage_error(fmt::format("\"{}\" is {} %", text, *number * 100), option,
                      fmt::format("write {}% for a percentage, or give a share below 1", text));
  }
  if (number && (share > 0 || (share == 0 && bounds.zero)) && share <= bounds.most) return share;
  throw usage_error(fmt::format("\"{}\" is not a {}", text, noun), option,
                    fmt::format("give {} 0 and at most {:g} %, such as 2.5% or 0.025",
                                bounds.zero ? "at least" : "more than", bounds.most * 100));
}

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

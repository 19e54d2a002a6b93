#include "analysis/gate/quantity.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/study/quality.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

const std::vector<QuantityInfo>& quantities() {
  static const std::vector<QuantityInfo> table = {
      {Quantity::time, "time", "time", true, true, true, 0.025},
      {Quantity::serial_fraction, "serial_fraction", "Karp-Flatt fraction", false, true, true,
       0.05},
      {Quantity::communication, "communication", "exposed communication", false, true, true, 0.05},
      {Quantity::loss, "loss", "training loss", true, true, false, kLossTolerance},
      {Quantity::accuracy, "accuracy", "test accuracy", false, false, false, kAccuracyTolerance},
  };
  return table;
}

const QuantityInfo& quantity_info(Quantity quantity) {
  return *std::find_if(quantities().begin(), quantities().end(),
                       [&](const QuantityInfo& info) { return info.quantity == quantity; });
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
    throw Error(ErrorKind::usage, fmt::format("\"{}\" is {} %", text, *number * 100), option,
                fmt::format("write {}% for a percentage, or give a share below 1", text));
  }
  if (number && (share > 0 || (share == 0 && bounds.zero)) && share <= bounds.most) return share;
  throw Error(ErrorKind::usage, fmt::format("\"{}\" is not a {}", text, noun), option,
              fmt::format("give {} 0 and at most {:g} %, such as 2.5% or 0.025",
                          bounds.zero ? "at least" : "more than", bounds.most * 100));
}

}  // namespace paceline

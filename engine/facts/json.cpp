#include "engine/facts/json.h"

#include <filesystem>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

void FactPlace::fail(const std::string& what) const {
  std::error_code ignored;
  throw input_error(what, key.empty() ? file : file + ", key " + key,
                    std::filesystem::exists(file, ignored) ? "fix the record or move it away"
                                                           : "correct what the record is made of");
}

Json number_to_json(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < kMostOfACount) {
    return static_cast<std::int64_t>(value);
  }
  return to_real(fmt::format("{:.7g}", value)).value_or(value);
}

double number_from_json(const Json& json, FactRule rule, const FactPlace& place) {
  if (!json.is_number()) place.fail("should be a number");
  const double value = json.get<double>();
  if (!std::isfinite(value)) place.fail("is not a finite number");
  if (rule.share && !(value >= 0 && value <= 1)) {
    place.fail("should be from 0 to 1, not " + json_text(json));
  }
  if (value < 0 && rule.least >= 0) place.fail("cannot be negative: " + json_text(json));
  return value;
}

// Published pages and other programs write 1e6, too.
std::int64_t whole_from_json(const Json& json, FactRule rule, const FactPlace& place, double most) {
  const double least = rule.above ? 1 : rule.least, value = number_from_json(json, rule, place);
  if (value < least || value > most || value != std::floor(value)) {
    place.fail(
        fmt::format("should be a whole number of at least {}, not {}", least, json_text(json)));
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace paceline

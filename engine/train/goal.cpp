#include "engine/train/goal.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::pair<const char*, Goal::Measure> kMeasures[] = {
    {"test_accuracy", Goal::Measure::test_accuracy},
    {"test_top5", Goal::Measure::test_top5},
    {"test_loss", Goal::Measure::test_loss}};

[[noreturn]] void refuse(std::string_view text, const char* wanted) {
  throw Error(ErrorKind::usage, fmt::format("until cannot be \"{}\"", text), "", wanted);
}

}  // namespace

bool Goal::met_by(const EpochQuality& quality) const {
  switch (measure) {
    case Measure::test_accuracy:
      return quality.test_accuracy >= value;
    case Measure::test_top5:
      return quality.test_top5 >= value;
    case Measure::test_loss:
      return quality.test_loss >= 0 && quality.test_loss <= value;
  }
  return false;
}

std::string Goal::text() const {
  for (const auto& [name, known] : kMeasures) {
    if (known != measure) continue;
    return fmt::format("{}{}{}", name, measure == Measure::test_loss ? "<=" : ">=", value);
  }
  return "";
}

Goal goal_of(std::string_view text) {
  constexpr auto kForms = "give test_accuracy=0.98, test_top5=0.9 or test_loss=0.1";
  const auto sign = text.find('=');
  if (sign == std::string_view::npos) refuse(text, kForms);
  std::string_view name = text.substr(0, sign);
  const char order = name.empty() ? ' ' : name.back();
  if (order == '<' || order == '>') name.remove_suffix(1);
  const auto value = to_real(text.substr(sign + 1));
  for (const auto& [known, measure] : kMeasures) {
    if (name != known) continue;
    const bool loss = measure == Goal::Measure::test_loss;
    if (order == (loss ? '>' : '<') || !value || !std::isfinite(*value)) refuse(text, kForms);
    if (!(*value > 0)) refuse(text, "give a value above 0");
    if (!loss && *value > 1) refuse(text, "give a share of the samples, at most 1");
    return {measure, *value};
  }
  refuse(text, kForms);
}

}  // namespace paceline

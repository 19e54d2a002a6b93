#include "engine/train/goal.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

[[noreturn]] void refuse(std::string_view text, const char* wanted) {
  throw Error(ErrorKind::usage, fmt::format("until cannot be \"{}\"", text), "", wanted);
}

}  // namespace

bool Goal::met_by(const EpochQuality& quality) const {
  const double reached = metric_at(quality, metric);
  return is_loss(metric) ? reached >= 0 && reached <= value : reached >= value;
}

std::string Goal::text() const {
  return fmt::format("{}{}{}", to_string(metric), is_loss(metric) ? "<=" : ">=", value);
}

Goal parse_goal(std::string_view text) {
  constexpr auto kForms = "give test_accuracy=0.98, test_top5=0.9 or test_loss=0.1";
  const auto sign = text.find('=');
  if (sign == std::string_view::npos) refuse(text, kForms);
  std::string_view name = text.substr(0, sign);
  const char order = name.empty() ? ' ' : name.back();
  if (order == '<' || order == '>') name.remove_suffix(1);
  const auto value = to_real(text.substr(sign + 1));
  const auto metric = find_metric(name);
  if (!metric || !is_of_test(*metric)) refuse(text, kForms);
  const bool loss = is_loss(*metric);
  if (order == (loss ? '>' : '<') || !value || !std::isfinite(*value)) refuse(text, kForms);
  if (!(*value > 0)) refuse(text, "give a value above 0");
  if (!loss && *value > 1) refuse(text, "give a share of the samples, at most 1");
  return {*metric, *value};
}

}  // namespace paceline

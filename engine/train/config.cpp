#include "engine/train/config.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

RateRule parse_rate_rule(const std::string& name) {
  if (name == "none") return RateRule::none;
  if (name == "linear") return RateRule::linear;
  if (name == "sqrt") return RateRule::sqrt;
  throw usage_error("unknown learning rate rule \"" + name + "\"", "", "known: none, linear, sqrt");
}

namespace {

double growth(const TrainConfig& config) {
  if (config.rate_rule == RateRule::none) return 1;
  return config.rate_rule == RateRule::linear ? config.replicas : std::sqrt(config.replicas);
}

[[noreturn]] void refuse(std::string_view text, const char* wanted) {
  throw usage_error(fmt::format("until cannot be \"{}\"", text), "", wanted);
}

}  // namespace

double scaled_rate(const TrainConfig& config) {
  return config.learning_rate * growth(config);
}

Schedule make_schedule(const TrainConfig& config, std::size_t steps_per_epoch) {
  const double first = config.rate_rule == RateRule::none ? 0 : config.learning_rate;
  const double epochs = config.epochs < kManyEpochs ? config.epochs
                                                    : static_cast<double>(config.step_limit) /
                                                          static_cast<double>(steps_per_epoch);
  return {config.schedule, first, scaled_rate(config), config.schedule.end_rate * growth(config),
          epochs};
}

bool Goal::met_by(const EpochFacts& quality) const {
  const auto reached = metric_at(quality, metric);
  return reached && (is_loss(metric) ? *reached <= value : *reached >= value);
}

std::string Goal::text() const {
  return fmt::format("{}{}{}", to_string(metric), is_loss(metric) ? "<=" : ">=", value);
}

Goal parse_goal(std::string_view text) {
  constexpr auto kForms = "give test_accuracy=0.98 or test_loss=0.1";
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

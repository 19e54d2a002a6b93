#include "engine/train/config.h"

#include <cmath>

#include "engine/core/error.h"

namespace paceline {

RateRule parse_rate_rule(const std::string& name) {
  if (name == "none") return RateRule::none;
  if (name == "linear") return RateRule::linear;
  if (name == "sqrt") return RateRule::sqrt;
  throw Error(ErrorKind::usage, "unknown learning rate rule \"" + name + "\"", "",
              "known: none, linear, sqrt");
}

namespace {

double growth(const TrainConfig& config) {
  switch (config.rate_rule) {
    case RateRule::none:
      return 1;
    case RateRule::linear:
      return config.replicas;
    case RateRule::sqrt:
      return std::sqrt(config.replicas);
  }
  return 1;
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

}  // namespace paceline

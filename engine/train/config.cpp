#include "engine/train/config.h"

#include <cmath>

#include "engine/core/error.h"

namespace paceline {

RateRule rate_rule_of(const std::string& name) {
  if (name == "none") return RateRule::none;
  if (name == "linear") return RateRule::linear;
  if (name == "sqrt") return RateRule::sqrt;
  throw Error(ErrorKind::usage, "unknown learning rate rule \"" + name + "\"", "",
              "known: none, linear, sqrt");
}

double scaled_rate(const TrainConfig& config) {
  switch (config.rate_rule) {
    case RateRule::none:
      return config.learning_rate;
    case RateRule::linear:
      return config.learning_rate * config.replicas;
    case RateRule::sqrt:
      return config.learning_rate * std::sqrt(config.replicas);
  }
  return config.learning_rate;
}

}  // namespace paceline

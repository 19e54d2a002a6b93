// Loss and accuracy of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record/bounds.h"

namespace paceline {

struct EpochFacts {
  std::optional<double> train_loss, train_accuracy, test_loss, test_accuracy, train_top5, test_top5;
  std::optional<std::int64_t> epoch;  // from 1; only if some epochs are omitted

  template <typename Each>
  void fields(Each& each) {
    each.loss("train_loss", train_loss);
    each("train_accuracy", train_accuracy);
    each.loss("test_loss", test_loss);
    each("test_accuracy", test_accuracy);
    each("train_top5", train_top5);
    each("test_top5", test_top5);
    each("epoch", epoch);
  }
};

struct GoalFacts {
  std::string goal;
  std::optional<bool> reached;
  std::optional<double> epochs, steps, fit_seconds, seconds_with_evaluation;

  template <typename Each>
  void fields(Each& each) {
    each("goal", goal);
    each("reached", reached);
    each("epochs", epochs, kPositive);
    each("steps", steps, kPositive);
    each("fit_seconds", fit_seconds, kPositive);
    each("seconds_with_evaluation", seconds_with_evaluation, kPositive);
  }
};

struct QualityFacts {
  std::vector<EpochFacts> epochs;  // NaN for a loss that is not finite
  std::string parameter_checksum;
  std::optional<double> test_accuracy, test_top5;  // 0 to 1
  std::optional<GoalFacts> until;

  template <typename Each>
  void fields(Each& each) {
    each("epochs", epochs);
    each("parameter_checksum", parameter_checksum);
    each("test_accuracy", test_accuracy, kShare);
    each("test_top5", test_top5, kShare);
    each("until", until);
  }
};

}  // namespace paceline

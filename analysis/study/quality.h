// Whether a row trained as well as its base: a faster training to a worse network is no speed-up.
#pragma once

#include <optional>
#include <string>

#include "analysis/study/study.h"

namespace paceline {

// The gate's thresholds, too: half a point of test accuracy, 5 % of training loss.
inline constexpr double kAccuracyTolerance = 0.005, kLossTolerance = 0.05;

struct QualityLoss {
  bool of_accuracy = true;  // else of the training loss
  double row = 0, base = 0;

  std::string label() const;  // "lower accuracy"
  std::string text() const;   // "64.20 % beside 75.40 %"
};

// Compares mean test accuracies, or without them the training losses of the last epoch. A
// difference counts beyond the tolerance, and if each row has 3 runs or more, only if the 95 %
// interval of the difference of the means excludes 0. Losses of fewer runs or of synthetic data are
// not compared. Empty: as good, not known, or a time to a goal, which both reached.
std::optional<QualityLoss> quality_lost(const Row& base, const Row& row);

}  // namespace paceline

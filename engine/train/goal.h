// What ends a training before its last epoch: an evaluation that is good enough.
#pragma once

#include <string>
#include <string_view>

#include "engine/train/outcome.h"

namespace paceline {

struct Goal {
  enum class Measure { test_accuracy, test_top5, test_loss };
  Measure measure = Measure::test_accuracy;
  double value = 0;  // at least, of a share of samples; at most, of the loss

  bool met_by(const EpochQuality& quality) const;
  std::string text() const;  // "test_accuracy>=0.98"
};

// "test_accuracy=0.98", ">=" as well; "test_top5=0.9"; "test_loss=0.1", "<=" as well. Throws usage.
Goal goal_of(std::string_view text);

}  // namespace paceline

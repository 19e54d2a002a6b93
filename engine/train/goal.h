// A goal that ends training before its last epoch: a good enough evaluation.
#pragma once

#include <string>
#include <string_view>

#include "engine/train/metric.h"

namespace paceline {

struct Goal {
  Metric metric = Metric::test_accuracy;  // of the test set
  double value = 0;                       // minimum for shares of samples, maximum for the loss

  bool met_by(const EpochQuality& quality) const;
  std::string text() const;  // "test_accuracy>=0.98"
};

// Parses "test_accuracy=0.98" or ">="; "test_top5=0.9"; "test_loss=0.1" or "<=". Throws usage.
Goal parse_goal(std::string_view text);

}  // namespace paceline

// The loss of one sample: softmax cross-entropy with smoothed labels,
//
//   -sum_j t_j log p_j,  t_j = s / C + (1 - s) [j is the label],  C classes
//
// The gradient with respect to the outputs is p - t.
#pragma once

#include <cstddef>

#include "engine/device/update.h"

namespace paceline {

// Targets of the classes, with label smoothing.
struct Targets {
  double at_label = 1, elsewhere = 0;
};
inline Targets make_targets(double smoothing, std::size_t classes) {
  const double each = smoothing / static_cast<double>(classes);
  return {1 - smoothing + each, each};
}

constexpr int kTop = 5;

// Whether `other` at column `j` ranks above `own` at `label`: larger, or equal and earlier.
template <typename T>
PACELINE_EVERYWHERE inline bool stands_before(T other, int j, T own, int label) {
  return other > own || (other == own && j < label);
}

// Whether fewer than five outputs rank above the label. False if the label's output is NaN.
template <typename T>
bool is_in_top(const T* row, std::size_t classes, std::size_t label) {
  int before = 0;
  for (std::size_t j = 0; j < classes; ++j) {
    before += stands_before(row[j], static_cast<int>(j), row[label], static_cast<int>(label));
  }
  return row[label] == row[label] && before < kTop;
}

// log(total), total being the sum of exp(x - largest), minus the targets' share of x - largest.
template <typename T>
double smoothed_loss(const T* row, std::size_t classes, std::size_t label, T largest,
                     double log_total, double smoothing) {
  const double at_label = static_cast<double>(row[label] - largest);
  if (smoothing == 0) return log_total - at_label;
  double sum = 0;
  for (std::size_t j = 0; j < classes; ++j) sum += static_cast<double>(row[j] - largest);
  return log_total - (1 - smoothing) * at_label - smoothing / static_cast<double>(classes) * sum;
}

}  // namespace paceline

// The distribution of a parameter's values, in the buckets of TensorFlow's tf.summary.histogram
// (tensorboard/plugins/histogram/summary_v2.py).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace paceline {

// Values in [left, right). The last bucket includes its right edge.
struct HistogramBucket {
  double left = 0, right = 0, count = 0;
  friend bool operator==(const HistogramBucket&, const HistogramBucket&) = default;
};

using Histogram = std::vector<HistogramBucket>;

constexpr std::size_t kHistogramBuckets = 30;

// kHistogramBuckets equal buckets from the minimum to the maximum. If all values are equal, all
// edges are equal and the last bucket has the values. Without values everything is zero. Ignores
// values that are not finite.
Histogram make_histogram(std::span<const double> values);

}  // namespace paceline

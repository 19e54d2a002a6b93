// The distribution of a parameter's values, in buckets as TensorFlow's tf.summary.histogram makes
// them (tensorboard/plugins/histogram/summary_v2.py).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace paceline {

// Values in [left, right); the last bucket holds its right edge, too.
struct HistogramBucket {
  double left = 0, right = 0, count = 0;
  friend bool operator==(const HistogramBucket&, const HistogramBucket&) = default;
};

using Histogram = std::vector<HistogramBucket>;

constexpr std::size_t kHistogramBuckets = 30;

// kHistogramBuckets equally wide ones from the least value to the greatest. Where all values are
// equal, so are all edges, and the last bucket holds them; without values all is zero. Values that
// are not finite are left out.
Histogram histogram_of(std::span<const double> values);

}  // namespace paceline

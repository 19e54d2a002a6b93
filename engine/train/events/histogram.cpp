#include "engine/train/events/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline {

Histogram make_histogram(std::span<const double> values) {
  Histogram buckets(kHistogramBuckets);
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  if (least > greatest) return buckets;
  const double width = (greatest - least) / static_cast<double>(kHistogramBuckets);
  for (std::size_t i = 0; i < kHistogramBuckets; ++i) {
    buckets[i].left = least + static_cast<double>(i) * width;
    buckets[i].right = least + static_cast<double>(i + 1) * width;
  }
  buckets.back().right = greatest;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const double at = width > 0 ? std::floor((value - least) / width) : kHistogramBuckets;
    const auto index = static_cast<std::size_t>(std::max(0.0, at));
    ++buckets[std::min(index, kHistogramBuckets - 1)].count;
  }
  return buckets;
}

}  // namespace paceline

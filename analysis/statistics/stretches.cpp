#include "analysis/statistics/stretches.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>

#include "analysis/statistics/statistics.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kHalfMedian = 3;  // neighbours on each side of the filter's median
constexpr std::size_t kLongestSpike = 3;
constexpr double kMadToDeviation = 1.4826;  // of a normal distribution
constexpr double kLengthsGrowBy = 1.25;     // of the stretches that are tried
constexpr double kLastMargin = 4;           // squares of noise, in favour of a last level
constexpr double kMostOutlyingShare = 0.1;  // of the sessions

double local_median(const std::vector<double>& values, std::size_t at) {
  std::array<double, 2 * kHalfMedian + 1> sorted{};
  const std::size_t begin = at - std::min(at, kHalfMedian);
  const std::size_t count = std::min(values.size(), at + kHalfMedian + 1) - begin;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t k = i;
    for (; k > 0 && sorted[k - 1] > values[begin + i]; --k) sorted[k] = sorted[k - 1];
    sorted[k] = values[begin + i];
  }
  return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

// Whether most of the window is within `distance` of a value: then so is the median, which need not
// be computed.
bool most_are_within(const std::vector<double>& values, std::size_t at, double distance) {
  const std::size_t begin = at - std::min(at, kHalfMedian);
  const std::size_t end = std::min(values.size(), at + kHalfMedian + 1);
  std::size_t count = 0;
  for (std::size_t i = begin; i < end; ++i) {
    count += std::abs(values[i] - values[at]) <= distance ? 1 : 0;
  }
  return 2 * count > end - begin;
}

std::size_t next_length(std::size_t length) {
  return std::max(length + 1,
                  static_cast<std::size_t>(static_cast<double>(length) * kLengthsGrowBy));
}

// See find_stretch(). Tries all stretches at the beginning, and others by lengths that grow.
Stretch best_stretch(const RunningSums& sums) {
  const std::size_t n = sums.weights.size() - 1;
  Stretch best;
  const auto consider = [&](std::size_t begin, std::size_t end) {
    const double explained = sums.explained(begin, end);
    if (explained > best.explained) best = {begin, end, explained};
  };
  for (std::size_t at = kFewestInLevel; at + kFewestInLevel <= n; ++at) consider(0, at);
  for (std::size_t k = kFewestInLevel; k + 2 * kFewestInLevel <= n; k = next_length(k)) {
    for (std::size_t i = kFewestInLevel; i + k + kFewestInLevel <= n; ++i) consider(i, i + k);
  }
  return best;
}

// Draws series that are as likely as the given one if nothing changed: it is autoregressive, and
// its innovations are put in another order.
class Redraws {
 public:
  Redraws(const ScaledSeries& series, double resemblance)
      : resemblance_(resemblance),
        first_(std::sqrt(1 - resemblance * resemblance)),
        drawn_(series) {
    const RunningSums sums(series);
    double before = 0;
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      const double scale = series.scales[i];
      const double value = (sums.values[i + 1] - sums.values[i]) * scale;
      innovations_.push_back(i == 0 ? first_ * value : value - resemblance * before);
      before = value;
    }
  }

  const ScaledSeries& next() {
    for (std::size_t i = innovations_.size() - 1; i > 0; --i) {
      std::swap(innovations_[i], innovations_[(std::uint64_t{random_()} * (i + 1)) >> 32]);
    }
    double value = innovations_[0] / first_;
    for (std::size_t i = 0; i < innovations_.size(); ++i) {
      if (i > 0) value = resemblance_ * value + innovations_[i];
      drawn_.values[i] = drawn_.scales[i] * value;
    }
    return drawn_;
  }

 private:
  double resemblance_, first_;
  std::vector<double> innovations_;
  ScaledSeries drawn_;
  std::mt19937 random_{20301};
};

// Moves outlying values to the limit beyond which they would be outlying.
ScaledSeries clip(ScaledSeries series) {
  const double limit = kHampelLimit * neighbour_noise(series);
  const std::vector<double> values = series.values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double middle = local_median(values, i), most = limit * series.scales[i];
    series.values[i] = std::clamp(values[i], middle - most, middle + most);
  }
  return series;
}

}  // namespace

ScaledSeries select_sessions(const ScaledSeries& series, const std::vector<std::size_t>& indices) {
  return {select_values(series.values, indices), select_values(series.scales, indices)};
}

std::vector<double> select_values(const std::vector<double>& values,
                                  const std::vector<std::size_t>& indices) {
  return mapped(indices, [&](std::size_t i) { return values[i]; });
}

double neighbour_noise(const ScaledSeries& series) {
  const auto& [values, scales] = series;
  if (values.size() < 2) return 0;
  std::vector<double> differences(values.size() - 1);
  for (std::size_t i = 1; i < values.size(); ++i) {
    differences[i - 1] = std::abs(values[i] - values[i - 1]) /
                         std::sqrt(scales[i] * scales[i] + scales[i - 1] * scales[i - 1]);
  }
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  if (*middle > 0) return kMadToDeviation * *middle;
  const double sum = std::accumulate(differences.begin(), differences.end(), 0.0);
  return std::sqrt(2.0) * sum / static_cast<double>(differences.size());
}

std::vector<std::size_t> find_outlying(const ScaledSeries& series) {
  const auto& [values, scales] = series;
  const double limit = kHampelLimit * neighbour_noise(series);
  std::vector<std::size_t> outlying;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double far = limit * scales[i] + kRounding;
    if (most_are_within(values, i, far)) continue;
    if (std::abs(values[i] - local_median(values, i)) > far) outlying.push_back(i);
  }
  const double most = kMostOutlyingShare * static_cast<double>(values.size());
  if (static_cast<double>(outlying.size()) > most) outlying.clear();
  return outlying;
}

RunningSums::RunningSums(const ScaledSeries& series) : weights{0}, values{0} {
  weights.reserve(series.values.size() + 1);
  values.reserve(series.values.size() + 1);
  double mean = 0;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    const double weight = 1 / (series.scales[i] * series.scales[i]);
    weights.push_back(weights.back() + weight);
    mean += weight * series.values[i];
  }
  mean /= weights.back();
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    const double weight = weights[i + 1] - weights[i], value = series.values[i] - mean;
    values.push_back(values.back() + weight * value);
    squares += weight * value * value;
  }
}

Stretch find_stretch(const ScaledSeries& series) {
  const std::vector<std::size_t> outlying = find_outlying(series);
  std::vector<std::size_t> kept;
  kept.reserve(series.values.size());
  for (std::size_t i = 0, next = 0; i < series.values.size(); ++i) {
    if (next < outlying.size() && outlying[next] == i) {
      ++next;
    } else {
      kept.push_back(i);
    }
  }
  if (kept.size() < 2 * kFewestInLevel) return {};
  const RunningSums sums(select_sessions(series, kept));
  if (std::sqrt(sums.squares / static_cast<double>(kept.size())) <= kRounding) return {};
  const Stretch best = best_stretch(sums);
  const double left = std::max(sums.squares - best.explained, 1e-12 * sums.squares);
  return {best.begin == 0 ? 0 : kept[best.begin],
          best.end == kept.size() ? series.values.size() : kept[best.end], best.explained / left};
}

double count_stretches(std::size_t sessions) {
  double count = static_cast<double>(sessions - 2 * kFewestInLevel + 1);
  for (std::size_t k = kFewestInLevel; k + 2 * kFewestInLevel <= sessions; k = next_length(k)) {
    count += static_cast<double>(sessions - k - 2 * kFewestInLevel + 1);
  }
  return count;
}

bool is_beyond_chance(const ScaledSeries& series, const Stretch& stretch, double resemblance,
                      double level) {
  // With `count` redraws, of which at most one reaches the stretch, p <= (1 + 1) / (1 + count).
  const auto count = static_cast<std::size_t>(std::ceil(2 / level)) - 1;
  Redraws redraws(series, resemblance);
  int reached = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const double explained = find_stretch(redraws.next()).explained;
    if (explained >= stretch.explained * (1 - kRounding) && ++reached > 1) return false;
  }
  return true;
}

std::vector<std::size_t> find_spike(const ScaledSeries& series) {
  const RunningSums sums(clip(series));
  const std::size_t n = series.values.size();
  const Stretch level = best_stretch(sums);
  Stretch spike;
  for (std::size_t k = 1; k <= kLongestSpike; ++k) {
    for (std::size_t i = 0; i + k <= n; ++i) {
      const double explained = sums.explained(i, i + k);
      if (explained > spike.explained) spike = {i, i + k, explained};
    }
  }
  std::vector<std::size_t> sessions;
  // The last sessions may be the first ones of a level.
  const double noise = (sums.squares - level.explained) / static_cast<double>(n - 2);
  const bool is_last = level.begin == 0 && spike.begin >= level.end;
  if (spike.explained <= level.explained + (is_last ? kLastMargin * noise : 0)) return sessions;
  for (std::size_t i = spike.begin; i < spike.end; ++i) sessions.push_back(i);
  return sessions;
}

}  // namespace paceline

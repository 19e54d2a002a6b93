#include "analysis/statistics/anytime.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace paceline {

namespace {

constexpr double kEffectVariance = 10;  // g of the header

// 1 + n g: how much more certain n values are of the mean than what is assumed of it.
double compute_gain(double count) {
  return 1 + count * kEffectVariance;
}

// The weight of independent rounds. The others share the rest: rounds rarely resemble each other.
constexpr double kWeightOfIndependence = 0.5;
constexpr std::array kCorrelationsTried = {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};

bool is_allowed(double correlation) {
  return correlation <= kMostResemblance;
}

// The logarithm of a sum of squares, which rounding can make 0.
double log_squares(double squares) {
  return std::log(std::max(squares, std::numeric_limits<double>::min()));
}

}  // namespace

double anytime_evidence(double t, std::size_t count, double degrees) {
  if (count < 2) return 1;
  const auto n = static_cast<double>(count);
  const double v = degrees > 0 ? degrees : n - 1;
  const double gain = compute_gain(n), x = t * t / v;
  const double ratio = std::isinf(x) ? std::log(gain) : std::log1p(x) - std::log1p(x / gain);
  return std::exp((v + 1) / 2 * ratio - std::log(gain) / 2);
}

double anytime_quantile(std::size_t count, double confidence, double degrees) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (count < 2) return kInfinity;
  const auto n = static_cast<double>(count);
  const double v = degrees > 0 ? degrees : n - 1, gain = compute_gain(n);
  // The square bracket of e at its limit.
  const double bracket = std::exp((std::log(gain) / 2 - std::log(1 - confidence)) * 2 / (v + 1));
  if (bracket >= gain) return kInfinity;
  return std::sqrt(v * (bracket - 1) / (1 - bracket / gain));
}

AnytimeRounds::AnytimeRounds(std::span<const double> differences)
    : count_(static_cast<double>(differences.size())) {
  for (const double value : differences) mean_ += value / count_;
  for (const double value : differences) deviation_ += (value - mean_) * (value - mean_) / count_;
  deviation_ = std::sqrt(deviation_);
  for (const double r : kCorrelationsTried) {
    Whitened sums{r, std::log(1 - r * r) / 2, 0, 0, 0};
    for (std::size_t i = 0; i < differences.size(); ++i) {
      const double unit = i == 0 ? std::sqrt(1 - r * r) : 1 - r;
      const double own = differences[i] - mean_;
      const double value = i == 0 ? unit * own : own - r * (differences[i - 1] - mean_);
      sums.squares += value * value;
      sums.design += unit * unit;
      sums.product += value * unit;
    }
    whitened_.push_back(sums);
  }
}

// `mean`: what is taken off the values, relative to their mean.
double AnytimeRounds::log_without_mean(const Whitened& at, double mean) const {
  const double squares = at.squares - 2 * mean * at.product + mean * mean * at.design;
  return at.log_determinant - count_ / 2 * log_squares(squares);
}

double AnytimeRounds::log_with_mean(const Whitened& at, double mean) const {
  const double squares = at.squares - 2 * mean * at.product + mean * mean * at.design;
  const double product = at.product - mean * at.design, gain = 1 + kEffectVariance * at.design;
  const double left =
      std::max(squares - kEffectVariance * product * product / gain, squares / gain);
  return at.log_determinant - std::log(gain) / 2 - count_ / 2 * log_squares(left);
}

double AnytimeRounds::evidence_against(double mean) const {
  const auto others = static_cast<double>(
      std::count_if(whitened_.begin(), whitened_.end(),
                    [](const Whitened& at) { return is_allowed(at.correlation); }) -
      1);
  double most = -std::numeric_limits<double>::infinity(), evidence = 0;
  for (const Whitened& at : whitened_) {
    if (is_allowed(at.correlation)) most = std::max(most, log_without_mean(at, mean - mean_));
  }
  for (const Whitened& at : whitened_) {
    if (!is_allowed(at.correlation)) continue;
    const double weight =
        at.correlation == 0 ? kWeightOfIndependence : (1 - kWeightOfIndependence) / others;
    evidence += weight * std::exp(log_with_mean(at, mean - mean_) - most);
  }
  return evidence;
}

double AnytimeRounds::p_value() const {
  if (std::abs(mean_) < kRounding) return 1;
  return std::min(1.0, 1 / evidence_against(0));
}

// How far from the mean evidence reaches the limit, on the side of `step`.
std::optional<double> AnytimeRounds::end_of_interval(double step, double limit) const {
  constexpr int kDoublings = 60, kHalvings = 40;
  double inside = 0, outside = step;
  for (int i = 0; evidence_against(mean_ + outside) < limit; ++i) {
    if (i == kDoublings) return std::nullopt;
    inside = outside;
    outside *= 2;
  }
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (inside + outside) / 2;
    (evidence_against(mean_ + middle) < limit ? inside : outside) = middle;
  }
  return mean_ + outside;
}

std::optional<Interval> AnytimeRounds::interval(double confidence) const {
  const double limit = 1 / (1 - confidence), step = std::max(deviation_, kRounding / 1000);
  const auto low = end_of_interval(-step, limit), high = end_of_interval(step, limit);
  if (!low || !high) return std::nullopt;
  return Interval{*low, *high};
}

double AnytimeRounds::resemblance() const {
  double most = -std::numeric_limits<double>::infinity(), likely = 0;
  for (const Whitened& at : whitened_) {
    const double left = at.squares - at.product * at.product / at.design;
    const double density =
        at.log_determinant - std::log(at.design) / 2 - (count_ - 1) / 2 * log_squares(left);
    if (density <= most) continue;
    most = density;
    likely = at.correlation;
  }
  return deviation_ < kRounding ? 0 : likely;
}

}  // namespace paceline

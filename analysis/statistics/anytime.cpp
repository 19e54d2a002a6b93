#include "analysis/statistics/anytime.h"

#include <cmath>
#include <limits>

namespace paceline {

namespace {

constexpr double kEffectVariance = 10;  // g of the header

// 1 + n g: how much more certain n values are of the mean than what is assumed of it.
double compute_gain(double count) {
  return 1 + count * kEffectVariance;
}

}  // namespace

double anytime_evidence(double t, std::size_t count) {
  if (count < 2) return 1;
  const auto n = static_cast<double>(count);
  const double gain = compute_gain(n), x = t * t / (n - 1);
  const double ratio = std::isinf(x) ? std::log(gain) : std::log1p(x) - std::log1p(x / gain);
  return std::exp(n / 2 * ratio - std::log(gain) / 2);
}

double anytime_quantile(std::size_t count, double confidence) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (count < 2) return kInfinity;
  const auto n = static_cast<double>(count);
  const double gain = compute_gain(n);
  // The square bracket of e at its limit.
  const double bracket = std::exp((std::log(gain) / 2 - std::log(1 - confidence)) * 2 / n);
  if (bracket >= gain) return kInfinity;
  return std::sqrt((n - 1) * (bracket - 1) / (1 - bracket / gain));
}

}  // namespace paceline

#include "analysis/predict/forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline {

namespace {

constexpr double kLawMisses = 0.1;  // s
constexpr double kMissesADoubling = 0.025, kMissesADoublingOfTwo = 0.08;
constexpr double kNormal90 = 1.6449;  // two-sided quantile

double doublings_to_nearest(const std::vector<SizedCost>& points, double replicas) {
  double least = std::numeric_limits<double>::infinity();
  for (const SizedCost& point : points) {
    least = std::min(least, std::abs(std::log2(replicas / point.replicas)));
  }
  return least;
}

}  // namespace

Forecast::Forecast(std::vector<SizedCost> points, Scaling scaling, double noise)
    : points_(std::move(points)), noise_(noise) {
  const std::vector<SizedCost> smaller(points_.begin(), points_.end() - 1);
  const SizedCost& last = points_.back();
  double sum = 0;
  for (const Law& law : laws_for(scaling, points_.size())) {
    const double ratio = FittedLaw(law, smaller).at(last.replicas) / last.cost;
    const double error = std::log(ratio);
    const double weight = 1 / (error * error + kLawMisses * kLawMisses);
    laws_.push_back({FittedLaw(law, points_), ratio - 1, weight});
    sum += weight;
  }
  for (LawWeight& law : laws_) law.weight /= sum;
}

double Forecast::at(double replicas) const {
  double mean = 0;
  for (const LawWeight& law : laws_) mean += law.weight * std::log(law.law.at(replicas));
  return std::exp(mean);
}

Interval Forecast::interval(double replicas) const {
  const double mean = std::log(at(replicas));
  double variance = noise_ * noise_;
  for (const LawWeight& law : laws_) {
    const double off = std::log(law.law.at(replicas)) - mean;
    variance += law.weight * off * off;
  }
  const double rate = points_.size() > 2 ? kMissesADoubling : kMissesADoublingOfTwo;
  const double missed = rate * doublings_to_nearest(points_, replicas);
  const double half = kNormal90 * std::sqrt(variance + missed * missed);
  return {std::exp(mean - half), std::exp(mean + half)};
}

std::optional<double> held_out_error(std::vector<SizedCost> points, Scaling scaling) {
  if (points.size() < 2) return std::nullopt;
  const SizedCost last = points.back();
  points.pop_back();
  if (points.size() == 1) return points.front().cost / last.cost - 1;
  return Forecast(std::move(points), scaling).at(last.replicas) / last.cost - 1;
}

}  // namespace paceline

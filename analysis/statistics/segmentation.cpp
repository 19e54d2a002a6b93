#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "analysis/statistics/level_shifts.h"
#include "analysis/statistics/statistics.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr double kChangedNoise = 0.2;    // of the level: chance that equal noise is called unequal
constexpr std::size_t kUnsurePairs = 2;  // on each side of a change of noise
constexpr double kLeastRelativeNoise = 0.1;  // of the largest

using Differences = std::vector<double>;

double median_between(const Differences& differences, std::size_t begin, std::size_t end) {
  Differences part(differences.begin() + static_cast<std::ptrdiff_t>(begin),
                   differences.begin() + static_cast<std::ptrdiff_t>(end));
  const auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
  std::ranges::nth_element(part, middle);
  return *middle;
}

// Moves each change of noise to where the mean absolute differences explain most.
void relocate_noise(const Differences& differences, std::vector<std::size_t>& ends) {
  const auto cost = [&](std::size_t from, std::size_t to) {
    const double sum = std::accumulate(differences.begin() + static_cast<std::ptrdiff_t>(from),
                                       differences.begin() + static_cast<std::ptrdiff_t>(to), 0.0);
    const auto count = static_cast<double>(to - from);
    return count * std::log(std::max(sum / count, 1e-300));
  };
  for (std::size_t k = 0; k + 1 < ends.size(); ++k) {
    const std::size_t begin = k == 0 ? 0 : ends[k - 1], end = ends[k + 1];
    double least = cost(begin, ends[k]) + cost(ends[k], end);
    for (std::size_t at = begin + kFewestInLevel; at + kFewestInLevel <= end; ++at) {
      const double other = cost(begin, at) + cost(at, end);
      if (other >= least) continue;
      least = other;
      ends[k] = at;
    }
  }
}

constexpr double kPlausibleErrorsOfFew = 3.5;

constexpr std::size_t kFewestForWeekdays = 28;  // sessions
constexpr std::size_t kFewestOfAWeekday = 4;

double median_around(const std::vector<double>& values, std::size_t at) {
  const std::size_t begin = at - std::min<std::size_t>(at, 7);
  const std::size_t end = std::min(values.size(), at + 8);
  return median({values.begin() + static_cast<std::ptrdiff_t>(begin),
                 values.begin() + static_cast<std::ptrdiff_t>(end)});
}

}  // namespace

Segmentation::Segmentation(const ScaledSeries& series, double resemblance, double level)
    : series_(series), resemblance_(resemblance), level_(level) {
  std::vector<std::size_t> all(series.values.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  split(std::move(all));
  std::ranges::sort(changes);
}

void Segmentation::split(std::vector<std::size_t> sessions) {
  Stretch best;
  for (;;) {  // until there is no further spike
    if (sessions.size() < 2 * kFewestInLevel) return;
    const ScaledSeries part = select_sessions(series_, sessions);
    best = find_stretch(part);
    if (best.explained == 0 || !is_beyond_chance(part, best, resemblance_, level_)) return;
    const std::vector<std::size_t> spike = find_spike(part);
    if (spike.empty()) break;
    for (const std::size_t i : spike) spikes.push_back(sessions[i]);
    sessions.erase(sessions.begin() + static_cast<std::ptrdiff_t>(spike.front()),
                   sessions.begin() + static_cast<std::ptrdiff_t>(spike.back() + 1));
  }
  if (best.begin > 0) changes.push_back(sessions[best.begin]);
  if (best.end < sessions.size()) changes.push_back(sessions[best.end]);
  const auto begin = sessions.begin() + static_cast<std::ptrdiff_t>(best.begin);
  const auto end = sessions.begin() + static_cast<std::ptrdiff_t>(best.end);
  split({sessions.begin(), begin});
  split({begin, end});
  split({end, sessions.end()});
}

std::vector<double> estimate_scales(std::span<const double> values, double level) {
  Differences differences;
  for (std::size_t i = 1; i < values.size(); i += 2) {
    differences.push_back(std::abs(values[i] - values[i - 1]));
  }
  Differences sorted = differences;
  std::ranges::sort(sorted);
  ScaledSeries ranks{{}, Differences(differences.size(), 1)};
  for (const double difference : differences) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), difference);
    ranks.values.push_back(static_cast<double>((first - sorted.begin()) + (last - sorted.begin())));
  }
  std::vector<std::size_t> ends = Segmentation(ranks, 0, kChangedNoise * level).changes;
  if (ends.empty()) return std::vector<double>(values.size(), 1);
  ends.push_back(differences.size());
  relocate_noise(differences, ends);
  Differences noises;
  for (std::size_t begin = 0; const std::size_t end : ends) {
    noises.resize(end, median_between(differences, begin, end));
    begin = end;
  }
  const double largest = std::ranges::max(noises), usual = median_between(noises, 0, noises.size());
  if (usual <= 0) return std::vector<double>(values.size(), 1);
  std::vector<double> scales;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t pair = std::min(i / 2, noises.size() - 1);
    const std::size_t last = std::min(pair + kUnsurePairs, noises.size() - 1);
    double noise = kLeastRelativeNoise * largest;
    for (std::size_t k = pair - std::min(pair, kUnsurePairs); k <= last; ++k) {
      noise = std::max(noise, noises[k]);
    }
    scales.push_back(noise / usual);
  }
  return scales;
}

double BestSplit::p_if_independent() const {
  return static_cast<double>(splits) * difference.p_value();
}

double BestSplit::p_value() const {
  Difference alike = difference;
  alike.standard_error *=
      std::sqrt(resemblance_inflation(plausible_resemblance, at, sessions() - at));
  return static_cast<double>(splits) * alike.p_value();
}

BestSplit best_split(std::span<const double> values) {
  BestSplit best;
  double most = -1;
  best.splits = values.size() - 3;
  for (std::size_t at = 2; at + 2 <= values.size(); ++at) {
    const Difference difference = pooled_difference(values.subspan(at), values.first(at));
    const double t = std::abs(difference.mean) / std::max(difference.standard_error, 1e-300);
    if (t <= most) continue;
    most = t;
    best.at = at;
    best.difference = difference;
  }
  if (values.size() < kFewestForResemblance) return best;
  std::vector<std::vector<double>> rest;
  for (const auto& level : {values.first(best.at), values.subspan(best.at)}) {
    std::vector<double>& left = rest.emplace_back(level.begin(), level.end());
    const double mean = paired_difference(level).mean;
    for (double& value : left) value -= mean;
  }
  best.plausible_resemblance =
      plausible_resemblance(resemblance_from_residuals(rest), values.size(), kPlausibleErrorsOfFew);
  return best;
}

double detectable_split(const BestSplit& split, double level) {
  const std::size_t values = split.sessions();
  const auto n = static_cast<double>(values), before = static_cast<double>(split.at);
  const double noise = split.difference.standard_error / std::sqrt(1 / before + 1 / (n - before));
  const double freedom = split.difference.degrees_of_freedom;
  const std::size_t half = values / 2;
  const double error =
      std::sqrt((1 / static_cast<double>(half) + 1 / static_cast<double>(values - half)) *
                resemblance_inflation(plausible_resemblance(split.plausible_resemblance, values, 1),
                                      half, values - half));
  return noise * plausible_noise(freedom) * error *
         (t_quantile(freedom, 1 - level / static_cast<double>(split.splits)) +
          t_quantile(freedom, 2 * kAimedPower - 1));
}

std::size_t weekday(double day) {  // 1970-01-01 was a Thursday
  return static_cast<std::size_t>(std::fmod(std::fmod(std::floor(day) + 3, 7) + 7, 7));
}

std::optional<std::array<double, 7>> weekday_effects(std::span<const double> days,
                                                     const std::vector<double>& values) {
  if (values.size() < kFewestForWeekdays) return std::nullopt;
  const double limit = 4 * neighbour_noise({values, std::vector<double>(values.size(), 1)});
  std::array<double, 7> sums{}, effects{};
  std::array<std::size_t, 7> counts{};
  std::vector<double> deviations;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double deviation = std::clamp(values[i] - median_around(values, i), -limit, limit);
    deviations.push_back(deviation);
    sums[weekday(days[i])] += deviation;
    ++counts[weekday(days[i])];
  }
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(deviations.begin(), deviations.end(), 0.0) / n;
  double between = 0, groups = 0;
  for (std::size_t k = 0; k < 7; ++k) {
    if (counts[k] == 0) continue;
    if (counts[k] < kFewestOfAWeekday) return std::nullopt;
    const auto count = static_cast<double>(counts[k]);
    effects[k] = sums[k] / count - mean;
    between += count * effects[k] * effects[k];
    ++groups;
  }
  double total = 0;
  for (const double each : deviations) total += (each - mean) * (each - mean);
  const double within = total - between;
  if (groups < 2 || within <= 0) return std::nullopt;
  const double f = (between / (groups - 1)) / (within / (n - groups));
  const boost::math::fisher_f distribution(groups - 1, n - groups);
  if (boost::math::cdf(boost::math::complement(distribution, f)) > kDriftLevel) return std::nullopt;
  return effects;
}

}  // namespace paceline

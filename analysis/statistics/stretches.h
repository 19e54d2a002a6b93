// The stretch of a series that stands out most from the rest of it, and whether that is chance.
//
// Sessions far from their neighbours (Hampel's filter: more than kHampelLimit times the noise from
// the median of seven) are left out inside the statistic, so a shuffled series is filtered as the
// one that was observed. Where sessions are exchangeable, chance gives a stretch with at most the
// level's probability, whatever the distribution: also with two modes.
#pragma once

#include <cstddef>
#include <vector>

namespace paceline {

constexpr std::size_t kFewestInLevel = 4;
constexpr double kHampelLimit = 5;

// `scales`: the noise of each value as a multiple of the usual one.
struct ScaledSeries {
  std::vector<double> values, scales;
};

ScaledSeries select_sessions(const ScaledSeries& series, const std::vector<std::size_t>& indices);
std::vector<double> select_values(const std::vector<double>& values,
                                  const std::vector<std::size_t>& indices);

// Noise of a value of scale 1. Of differences of neighbours, which shifts and drifts hardly affect:
// by the median of their absolute values; if most are equal, by the mean.
double neighbour_noise(const ScaledSeries& series);

// In order. None if they are more than a tenth: many far values are part of the noise.
std::vector<std::size_t> find_outlying(const ScaledSeries& series);

// Running sums of weights (1 / scale^2) and of weighted values less their mean, from 0.
struct RunningSums {
  std::vector<double> weights, values;
  double squares = 0;  // of the values less their mean, weighted

  explicit RunningSums(const ScaledSeries& series);
  // Squares that are explained if [begin, end) has a mean of its own.
  double explained(std::size_t begin, std::size_t end) const {
    const double weight = weights[end] - weights[begin], sum = values[end] - values[begin];
    return sum * sum * weights.back() / (weight * (weights.back() - weight));
  }
};

// [begin, end), with the squares that it explains as a share of those that it leaves. 0: none.
struct Stretch {
  std::size_t begin = 0, end = 0;
  double explained = 0;
};

// The best of the stretches of at least kFewestInLevel sessions that are not outlying, with as many
// on each side or none.
Stretch find_stretch(const ScaledSeries& series);
// How many find_stretch() tries in a series of so many.
double count_stretches(std::size_t sessions);

// Whether less than a share `level` of series in which nothing changed have such a stretch: the
// innovations of the series about its mean are put in another order. `resemblance`: correlation of
// neighbours (of an autoregressive series); without, this is the usual permutation test.
bool is_beyond_chance(const ScaledSeries& series, const Stretch& stretch, double resemblance,
                      double level);

// One to three sessions in a row that explain more than any longer stretch. Empty: none does.
std::vector<std::size_t> find_spike(const ScaledSeries& series);

// By how much resembling neighbours inflate the variance of the mean of many sessions.
inline double asymptotic_inflation(double resemblance) {
  return (1 + resemblance) / (1 - resemblance);
}

}  // namespace paceline

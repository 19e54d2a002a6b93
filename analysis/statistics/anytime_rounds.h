// The anytime-valid test of anytime.h, for rounds that may resemble their neighbours.
//
// The differences of rounds, in order, are a mean plus a normal process in which neighbours have
// correlation r (AR(1)), of unknown variance and unknown r from 0 to kMostResemblance. For a known
// r, the values are independent once r times the one before is taken off. The density of the values
// up to their scale then has a closed form, both for mean 0 and for a mean that over the deviation
// is normal with variance g. The evidence against mean 0 is the density with a mean, averaged over
// r, over the largest density without one, whatever r it needs. The latter is at least that of the
// true r, so the evidence is at most a nonnegative martingale that starts at 1, and holds at any
// time, as in anytime.h.
//   Wasserman, Ramdas, Balakrishnan, "Universal inference", PNAS 117, 2020.
//
// The price: rounds that shift may also resemble each other, and only more of them tell these
// apart. Where neighbours resemble each other more than that, `resemblance` says so.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline {

constexpr double kMostResemblance = 0.7;

class AnytimeRounds {
 public:
  // At least one value, in the order of the rounds.
  explicit AnytimeRounds(std::span<const double> differences);

  // 1: none; 20 or more against the true mean: in 5 % of studies at most, however many looks.
  double evidence_against(double mean) const;
  double p_value() const;  // that the mean is 0
  // The means against which there is less. Empty: too few rounds.
  std::optional<Interval> interval(double confidence = kConfidence) const;
  // The most likely correlation of neighbours, from 0 to 0.95, whatever the mean is.
  double resemblance() const;

 private:
  // Sums after r times the value before is taken off: of squares, of the squares of what a mean of
  // 1 becomes, and of the products of both.
  struct Whitened {
    double correlation = 0, log_determinant = 0, squares = 0, design = 0, product = 0;
  };

  double log_with_mean(const Whitened& at, double mean) const;
  double log_without_mean(const Whitened& at, double mean) const;
  std::optional<double> end_of_interval(double step, double limit) const;

  std::vector<Whitened> whitened_;
  double count_ = 0, mean_ = 0, deviation_ = 0;
};

}  // namespace paceline

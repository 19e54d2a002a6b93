#include "analysis/statistics/level_shifts.h"

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <numeric>
#include <random>

namespace paceline {

namespace {

constexpr std::size_t kHalfMedian = 3;          // neighbours on each side of the filter's median
constexpr std::size_t kNear = 60;               // sessions on each side that a drift is fitted to
constexpr std::size_t kFewestForWeekdays = 28;  // sessions
constexpr std::size_t kFewestOfAWeekday = 4;
constexpr std::size_t kFewestForResemblance = 60;
constexpr double kMadToDeviation = 1.4826;  // of a normal distribution
constexpr double kLengthsGrowBy = 1.25;     // of the stretches that are tried
constexpr double kClearly = 0.001;          // of the level: Student's bound decides by itself
constexpr double kLeastLikelihood = 1 / 20.0;

using Values = std::vector<double>;

double median(Values values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double median_near(const Values& values, std::size_t at, std::size_t half) {
  const std::size_t begin = at - std::min(at, half), end = std::min(values.size(), at + half + 1);
  return median({values.begin() + static_cast<std::ptrdiff_t>(begin),
                 values.begin() + static_cast<std::ptrdiff_t>(end)});
}

// By the median absolute difference of neighbours; if most are equal, by the mean.
double noise_of(const Values& values) {
  Values differences;
  for (std::size_t i = 1; i < values.size(); ++i) {
    differences.push_back(std::abs(values[i] - values[i - 1]));
  }
  const double middle = median(differences);
  if (middle > 0) return kMadToDeviation * middle / std::sqrt(2.0);
  const double sum = std::accumulate(differences.begin(), differences.end(), 0.0);
  return sum / static_cast<double>(differences.size());
}

std::size_t weekday_of(double day) {  // 1970-01-01 was a Thursday
  return static_cast<std::size_t>(std::fmod(std::fmod(std::floor(day) + 3, 7) + 7, 7));
}

double two_sided(double t, double degrees_of_freedom) {
  return Difference{t, 1, degrees_of_freedom, 2}.p_value();
}

// Deviations from the weeks around, by weekday, if their differences are significant (one-way
// analysis of variance).
std::optional<std::array<double, 7>> weekday_effects(std::span<const double> days,
                                                     const Values& values) {
  if (values.size() < kFewestForWeekdays) return std::nullopt;
  const double limit = 4 * noise_of(values);
  std::array<double, 7> sums{}, effects{};
  std::array<std::size_t, 7> counts{};
  Values deviations;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double deviation = std::clamp(values[i] - median_near(values, i, 7), -limit, limit);
    deviations.push_back(deviation);
    sums[weekday_of(days[i])] += deviation;
    ++counts[weekday_of(days[i])];
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

// Of neighbours, from the variances of differences of neighbours and of next but one: their ratio
// is 1 + r for an autoregressive series. 0 unless significant.
double resemblance_of(const Values& values, double noise) {
  const std::size_t n = values.size();
  if (n < kFewestForResemblance || noise <= 0) return 0;
  const double limit = 4 * std::sqrt(2.0) * noise;
  const auto variance = [&](std::size_t apart) {
    double sum = 0;
    for (std::size_t i = apart; i < n; ++i) {
      const double difference = std::clamp(values[i] - values[i - apart], -limit, limit);
      sum += difference * difference;
    }
    return sum / static_cast<double>(n - apart);
  };
  const double r = variance(2) / variance(1) - 1;
  return r > 3 / std::sqrt(static_cast<double>(n)) ? std::min(r, 0.9) : 0;
}

// Stretches [begin, begin + length) of a series against the rest of it. The square of the sum of
// centred values, times `weight`, grows with the t statistic.
struct Stretches {
  std::size_t length = 0, first = 0, last = 0;  // of `begin`, both included
  double weight = 0;
};

std::vector<Stretches> stretches_of(std::size_t n) {
  std::vector<Stretches> all;
  const auto weight = [n](std::size_t length) {
    const auto k = static_cast<double>(length);
    return 1 / (k * (1 - k / static_cast<double>(n)));
  };
  for (std::size_t at = kFewestInLevel; at + kFewestInLevel <= n; ++at) {
    all.push_back({at, 0, 0, weight(at)});
  }
  for (std::size_t k = kFewestInLevel; k + 2 * kFewestInLevel <= n;
       k = std::max(k + 1, static_cast<std::size_t>(static_cast<double>(k) * kLengthsGrowBy))) {
    all.push_back({k, kFewestInLevel, n - k - kFewestInLevel, weight(k)});
  }
  return all;
}

struct Stretch {
  double statistic = 0;
  std::size_t begin = 0, end = 0;
};

// `sums`: running sums of centred values, from 0.
double largest(const std::vector<Stretches>& all, const Values& sums) {
  double most = 0;
  for (const Stretches& each : all) {
    double square = 0;
    for (std::size_t i = each.first; i <= each.last; ++i) {
      const double sum = sums[i + each.length] - sums[i];
      square = std::max(square, sum * sum);
    }
    most = std::max(most, each.weight * square);
  }
  return most;
}

Stretch find(const std::vector<Stretches>& all, const Values& sums) {
  Stretch best;
  for (const Stretches& each : all) {
    for (std::size_t i = each.first; i <= each.last; ++i) {
      const double sum = sums[i + each.length] - sums[i];
      const double statistic = each.weight * sum * sum;
      if (statistic > best.statistic) best = {statistic, i, i + each.length};
    }
  }
  return best;
}

class ShiftFinder {
 public:
  ShiftFinder(std::span<const double> days, std::span<const double> values, double level)
      : days_(days.begin(), days.end()), values_(values.begin(), values.end()), level_(level) {}

  LevelShifts find_all() {
    found_.weekdays = weekday_effects(days_, values_);
    for (std::size_t i = 0; found_.weekdays && i < values_.size(); ++i) {
      values_[i] -= (*found_.weekdays)[weekday_of(days_[i])];
    }
    noise_ = noise_of(values_);
    set_aside_outlying();
    found_.resemblance = resemblance_of(clean_, noise_);
    inflation_ = (1 + found_.resemblance) / (1 - found_.resemblance);
    look_for_changes();
    if (const auto drift = drift_within_levels()) {  // it hides steps: once more without it
      Values drifting = clean_;
      for (std::size_t i = 0; i < clean_.size(); ++i) clean_[i] -= drift->per_day * days_[i];
      look_for_changes();
      clean_ = std::move(drifting);
    }
    describe();
    return std::move(found_);
  }

 private:
  void set_aside_outlying() {
    clean_ = values_;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double middle = median_near(values_, i, kHalfMedian);
      if (std::abs(values_[i] - middle) <= kOutlying * noise_ + kRounding) continue;
      found_.outlying.push_back(i);
      clean_[i] = middle;
    }
  }

  void look_for_changes() {
    changes_.clear();
    split(0, clean_.size());
    std::sort(changes_.begin(), changes_.end());
    keep_what_is_no_drift();
  }

  // Values of [begin, end) less their mean, summed up from 0.
  static void sum_up(const Values& values, Values& sums) {
    sums[0] = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
  }

  void split(std::size_t begin, std::size_t end) {
    const std::size_t n = end - begin;
    if (n < 2 * kFewestInLevel) return;
    Values part(clean_.begin() + static_cast<std::ptrdiff_t>(begin),
                clean_.begin() + static_cast<std::ptrdiff_t>(end));
    const double mean = std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(n);
    double squares = 0;
    for (double& value : part) {
      value -= mean;
      squares += value * value;
    }
    if (std::sqrt(squares / static_cast<double>(n)) <= kRounding) return;
    const std::vector<Stretches> all = stretches_of(n);
    Values sums(n + 1);
    sum_up(part, sums);
    const Stretch best = find(all, sums);
    if (!is_beyond_chance(part, squares, all, best.statistic / inflation_)) return;
    const std::size_t from = begin + best.begin, to = begin + best.end;
    if (from > begin) changes_.push_back(from);
    if (to < end) changes_.push_back(to);
    split(begin, from);
    split(from, to);
    split(to, end);
  }

  bool is_beyond_chance(Values part, double squares, const std::vector<Stretches>& all,
                        double statistic) {
    const auto n = static_cast<double>(part.size());
    double tried = 0;
    for (const Stretches& each : all) tried += static_cast<double>(each.last - each.first + 1);
    const double rest = std::max(squares - statistic, 1e-12 * squares);
    if (tried * two_sided(std::sqrt(statistic / (rest / (n - 2))), n - 2) < kClearly * level_) {
      return true;
    }
    // At most one of as many shuffled series that the probability is below the level.
    const auto shuffles = static_cast<std::size_t>(std::ceil(2 / level_)) - 1;
    Values sums(part.size() + 1);
    int beyond = 0;
    for (std::size_t k = 0; k < shuffles; ++k) {
      for (std::size_t i = part.size() - 1; i > 0; --i) {
        std::swap(part[i], part[(std::uint64_t{random_()} * (i + 1)) >> 32]);
      }
      sum_up(part, sums);
      if (largest(all, sums) >= statistic * (1 - kRounding) && ++beyond > 1) return false;
    }
    return true;
  }

  std::size_t begin_of(std::size_t change) const { return change == 0 ? 0 : changes_[change - 1]; }
  std::size_t end_of(std::size_t change) const {
    return change + 1 == changes_.size() ? clean_.size() : changes_[change + 1];
  }

  // Sum of squared deviations from the means on both sides of `at`.
  double rest_of_split(std::size_t begin, std::size_t at, std::size_t end) const {
    const auto rest = [&](std::size_t from, std::size_t to) {
      double sum = 0, squares = 0;
      for (std::size_t i = from; i < to; ++i) {
        sum += clean_[i] - clean_[begin];
        squares += (clean_[i] - clean_[begin]) * (clean_[i] - clean_[begin]);
      }
      return squares - sum * sum / static_cast<double>(to - from);
    };
    return rest(begin, at) + rest(at, end);
  }

  // Moves each change to where it explains most, its neighbours being fixed.
  void relocate() {
    for (std::size_t k = 0; k < changes_.size(); ++k) {
      const std::size_t begin = begin_of(k), end = end_of(k);
      double least = rest_of_split(begin, changes_[k], end);
      for (std::size_t at = begin + kFewestInLevel; at + kFewestInLevel <= end; ++at) {
        const double rest = rest_of_split(begin, at, end);
        if (rest >= least) continue;
        least = rest;
        changes_[k] = at;
      }
    }
  }

  // Of the step in the least-squares fit of a line with a step to the sessions near a change.
  double p_beside_a_line(std::size_t change) const {
    const std::size_t at = changes_[change];
    const std::size_t begin = std::max(begin_of(change), at - std::min(at, kNear));
    const std::size_t end = std::min(end_of(change), at + kNear);
    const auto n = static_cast<double>(end - begin);
    double mean_day = 0, mean = 0;
    const double after = static_cast<double>(end - at) / n;
    for (std::size_t i = begin; i < end; ++i) {
      mean_day += days_[i] / n;
      mean += clean_[i] / n;
    }
    double dd = 0, ds = 0, ss = 0, dy = 0, sy = 0, yy = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const double day = days_[i] - mean_day, value = clean_[i] - mean;
      const double step = (i >= at ? 1.0 : 0.0) - after;
      dd += day * day;
      ds += day * step;
      ss += step * step;
      dy += day * value;
      sy += step * value;
      yy += value * value;
    }
    if (dd <= 0) return 0;  // all on one day
    const double free = ss - ds * ds / dd, along = sy - ds * dy / dd;
    if (free <= 0) return 1;
    const double rest = std::max(yy - dy * dy / dd - along * along / free, 1e-12 * yy);
    return two_sided(along / std::sqrt(free * rest / (n - 3) * inflation_), n - 3);
  }

  void keep_what_is_no_drift() {
    for (;;) {
      relocate();
      Values p_values;
      for (std::size_t k = 0; k < changes_.size(); ++k) p_values.push_back(p_beside_a_line(k));
      const auto weakest = std::max_element(p_values.begin(), p_values.end());
      if (weakest == p_values.end() || *weakest <= kDriftLevel) return;
      changes_.erase(changes_.begin() + (weakest - p_values.begin()));
    }
  }

  // A level's sessions that are not outlying.
  struct Part {
    double count = 0, day = 0, mean = 0;
    Values values;
  };

  // Sums over the levels, each about its own means.
  struct Within {
    std::vector<Part> parts;
    double squares = 0, days_square = 0, products = 0, freedom = 0;
  };

  Within within_levels() const {
    Within all;
    for (std::size_t k = 0; k <= changes_.size(); ++k) {
      const std::size_t begin = k == 0 ? 0 : changes_[k - 1];
      const std::size_t end = k == changes_.size() ? clean_.size() : changes_[k];
      Part part;
      Values days;
      for (std::size_t i = begin; i < end; ++i) {
        if (std::ranges::binary_search(found_.outlying, i)) continue;
        part.values.push_back(clean_[i]);
        days.push_back(days_[i]);
      }
      part.count = static_cast<double>(days.size());
      part.day = std::accumulate(days.begin(), days.end(), 0.0) / part.count;
      part.mean = std::accumulate(part.values.begin(), part.values.end(), 0.0) / part.count;
      for (std::size_t i = 0; i < days.size(); ++i) {
        const double day = days[i] - part.day, value = part.values[i] - part.mean;
        all.squares += value * value;
        all.days_square += day * day;
        all.products += day * value;
      }
      all.freedom += part.count - 1;
      all.parts.push_back(std::move(part));
    }
    return all;
  }

  std::optional<SeriesDrift> drift_within_levels() const {
    const Within all = within_levels();
    if (all.days_square <= 0 || all.freedom < 2) return std::nullopt;
    const double slope = all.products / all.days_square;
    const double rest = std::max(all.squares - slope * all.products, 0.0);
    const Difference drift{slope,
                           std::sqrt(rest / (all.freedom - 1) * inflation_ / all.days_square),
                           all.freedom - 1, 2};
    if (drift.standard_error <= 0) return std::nullopt;
    const auto interval = drift.interval();
    if (two_sided(slope / drift.standard_error, drift.degrees_of_freedom) > kDriftLevel) return {};
    return SeriesDrift{slope, *interval};
  }

  void describe() {
    const Within all = within_levels();
    found_.drift = drift_within_levels();
    const double slope = found_.drift ? found_.drift->per_day : 0;
    const double variance =
        std::max(all.squares - slope * all.products, 0.0) / std::max(all.freedom, 1.0);
    found_.noise = std::sqrt(variance);
    for (std::size_t k = 0; k < all.parts.size(); ++k) {
      const Part& part = all.parts[k];
      const Difference mean{part.mean, std::sqrt(variance * inflation_ / part.count), all.freedom,
                            part.values.size()};
      found_.levels.push_back({k == 0 ? 0 : changes_[k - 1],
                               k == changes_.size() ? clean_.size() : changes_[k], part.mean,
                               mean.interval()});
      if (k > 0) add_shift(k, all, variance);
    }
  }

  void add_shift(std::size_t k, const Within& all, double variance) {
    const Part &before = all.parts[k - 1], &after = all.parts[k];
    LevelShift shift;
    shift.at = shift.earliest = shift.latest = changes_[k - 1];
    Difference size = independent_difference(after.values, before.values);
    size.standard_error *= std::sqrt(inflation_);
    if (found_.drift) {
      const double days = after.day - before.day;
      size.mean -= found_.drift->per_day * days;
      size.standard_error =
          std::sqrt(variance * inflation_ *
                    (1 / before.count + 1 / after.count + days * days / all.days_square));
      size.degrees_of_freedom = all.freedom - 1;
    }
    shift.size = size.mean;
    shift.interval = size.interval();
    const std::size_t begin = begin_of(k - 1), end = end_of(k - 1);
    const double most = rest_of_split(begin, shift.at, end) -
                        2 * std::log(kLeastLikelihood) * variance * inflation_;
    for (std::size_t at = begin + 1; at < end; ++at) {
      if (rest_of_split(begin, at, end) > most) continue;
      shift.earliest = std::min(shift.earliest, at);
      shift.latest = std::max(shift.latest, at);
    }
    found_.shifts.push_back(shift);
  }

  Values days_, values_, clean_;
  double level_ = 0, noise_ = 0, inflation_ = 1;
  std::vector<std::size_t> changes_;  // first sessions of new levels
  LevelShifts found_;
  std::mt19937 random_{20301};
};

}  // namespace

LevelShifts find_level_shifts(std::span<const double> days, std::span<const double> values,
                              double level) {
  return ShiftFinder(days, values, level).find_all();
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
  return best;
}

}  // namespace paceline

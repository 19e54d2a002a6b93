#include "analysis/statistics/level_shifts.h"

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <numeric>

#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr std::size_t kNear = 60;               // sessions on each side that a drift is fitted to
constexpr std::size_t kFewestForWeekdays = 28;  // sessions
constexpr std::size_t kFewestOfAWeekday = 4;
constexpr double kLeastLikelihood = 1 / 20.0;
constexpr double kPlausibleErrors = 0.5;           // standard errors of resemblance
constexpr std::size_t kEnoughForResemblance = 60;  // sessions; fewer can show neither that nor none
constexpr double kLeastErrors = 2;                 // standard errors; less is none

using Values = std::vector<double>;

double median_around(const Values& values, std::size_t at) {
  const std::size_t begin = at - std::min<std::size_t>(at, 7);
  const std::size_t end = std::min(values.size(), at + 8);
  return median({values.begin() + static_cast<std::ptrdiff_t>(begin),
                 values.begin() + static_cast<std::ptrdiff_t>(end)});
}

std::size_t weekday(double day) {  // 1970-01-01 was a Thursday
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
  const double limit = 4 * neighbour_noise({values, Values(values.size(), 1)});
  std::array<double, 7> sums{}, effects{};
  std::array<std::size_t, 7> counts{};
  Values deviations;
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

double asymptotic_inflation(double resemblance) {
  return (1 + resemblance) / (1 - resemblance);
}

// One search for shifts, at a resemblance of neighbours.
class LevelSearch {
 public:
  LevelSearch(const Values& days, const ScaledSeries& series, double inflation)
      : days_(days), series_(series), inflation_(inflation) {}

  LevelShifts find(double resemblance, double level) {
    const bool can_show = days_.size() >= kEnoughForResemblance;
    line_inflation_ = can_show ? inflation_ : asymptotic_inflation(resemblance);
    look_for_changes(resemblance, level);
    if (const auto drift = drift_within_levels()) {  // it hides steps: once more without it
      const Values drifting = series_.values;
      for (std::size_t i = 0; i < days_.size(); ++i) series_.values[i] -= drift->per_day * days_[i];
      look_for_changes(resemblance, level);
      series_.values = drifting;
      keep_inlying();
    }
    return describe();
  }

  // The resemblance of what levels and drift leave: the larger of two estimates.
  double residual_resemblance() const {
    const Within all = within_levels();
    const auto drift = drift_within_levels();
    std::vector<Values> rest;
    ScaledSeries joined;
    for (std::size_t k = 0; k <= changes_.size(); ++k) {
      const Part& part = all.parts[k];
      Values& left = rest.emplace_back();
      for (std::size_t i = 0; i < part.values.size(); ++i) {
        const std::size_t at = level_begin(k) + i;
        const double line = drift ? drift->per_day * (clean_days_[at] - part.day) : 0;
        left.push_back((part.values[i] - part.mean - line) / clean_.scales[at]);
      }
      joined.values.insert(joined.values.end(), left.begin(), left.end());
    }
    joined.scales.assign(joined.values.size(), 1);
    return std::max(resemblance_from_residuals(rest), resemblance_from_differences(joined));
  }

 private:
  void look_for_changes(double resemblance, double level) {
    const Segmentation found(series_, resemblance, level);
    outlying_ = find_outlying(series_);
    outlying_.insert(outlying_.end(), found.spikes.begin(), found.spikes.end());
    std::ranges::sort(outlying_);
    outlying_.erase(std::unique(outlying_.begin(), outlying_.end()), outlying_.end());
    keep_inlying();
    changes_.clear();
    for (const std::size_t change : found.changes) {
      const auto at = std::ranges::lower_bound(kept_, change) - kept_.begin();
      const std::size_t begin = changes_.empty() ? 0 : changes_.back();
      const auto position = static_cast<std::size_t>(at);
      if (position >= begin + kFewestInLevel && position + kFewestInLevel <= kept_.size()) {
        changes_.push_back(position);
      }
    }
    reject_shifts_explained_by_drift();
  }

  void keep_inlying() {
    kept_.clear();
    clean_days_.clear();
    for (std::size_t i = 0; i < days_.size(); ++i) {
      if (std::ranges::binary_search(outlying_, i)) continue;
      kept_.push_back(i);
      clean_days_.push_back(days_[i]);
    }
    clean_ = select_sessions(series_, kept_);
  }

  std::size_t level_begin(std::size_t level) const { return level == 0 ? 0 : changes_[level - 1]; }
  std::size_t level_end(std::size_t level) const {
    return level == changes_.size() ? kept_.size() : changes_[level];
  }

  double weight(std::size_t i) const { return 1 / (clean_.scales[i] * clean_.scales[i]); }

  // Sum of squared deviations from the means on both sides of `at`, weighted.
  double rest_of_split(std::size_t begin, std::size_t at, std::size_t end) const {
    const auto rest = [&](std::size_t from, std::size_t to) {
      double weights = 0, sum = 0, squares = 0;
      for (std::size_t i = from; i < to; ++i) {
        const double value = clean_.values[i] - clean_.values[begin];
        weights += weight(i);
        sum += weight(i) * value;
        squares += weight(i) * value * value;
      }
      return squares - sum * sum / weights;
    };
    return rest(begin, at) + rest(at, end);
  }

  // Moves each change to where it explains most, its neighbours being fixed.
  void relocate() {
    for (std::size_t k = 0; k < changes_.size(); ++k) {
      const std::size_t begin = level_begin(k), end = level_end(k + 1);
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
    const std::size_t begin = std::max(level_begin(change), at - std::min(at, kNear));
    const std::size_t end = std::min(level_end(change + 1), at + kNear);
    const auto n = static_cast<double>(end - begin);
    double weights = 0, mean_day = 0, mean = 0, after = 0;
    for (std::size_t i = begin; i < end; ++i) {
      weights += weight(i);
      mean_day += weight(i) * clean_days_[i];
      mean += weight(i) * clean_.values[i];
      after += i >= at ? weight(i) : 0;
    }
    mean_day /= weights;
    mean /= weights;
    after /= weights;
    double dd = 0, ds = 0, ss = 0, dy = 0, sy = 0, yy = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const double day = clean_days_[i] - mean_day, value = clean_.values[i] - mean;
      const double step = (i >= at ? 1.0 : 0.0) - after;
      dd += weight(i) * day * day;
      ds += weight(i) * day * step;
      ss += weight(i) * step * step;
      dy += weight(i) * day * value;
      sy += weight(i) * step * value;
      yy += weight(i) * value * value;
    }
    if (dd <= 0) return 0;  // all on one day
    const double free = ss - ds * ds / dd, along = sy - ds * dy / dd;
    if (free <= 0) return 1;
    const double rest = std::max(yy - dy * dy / dd - along * along / free, 1e-12 * yy);
    return two_sided(along / std::sqrt(free * rest / (n - 3) * line_inflation_), n - 3);
  }

  void reject_shifts_explained_by_drift() {
    for (;;) {
      relocate();
      Values p_values;
      for (std::size_t k = 0; k < changes_.size(); ++k) p_values.push_back(p_beside_a_line(k));
      const auto weakest = std::max_element(p_values.begin(), p_values.end());
      if (weakest == p_values.end() || *weakest <= kDriftLevel) return;
      changes_.erase(changes_.begin() + (weakest - p_values.begin()));
    }
  }

  struct Part {  // a level's sessions that are not outlying
    double count = 0, day = 0, mean = 0;
    double square_scale = 0;  // mean
    Values values;
  };

  // Sums over the levels, each about its own means. Squares and products are weighted.
  struct Within {
    std::vector<Part> parts;
    double squares = 0, days_square = 0, products = 0, freedom = 0;
  };

  Within within_levels() const {
    Within all;
    for (std::size_t k = 0; k <= changes_.size(); ++k) {
      Part part;
      part.count = static_cast<double>(level_end(k) - level_begin(k));
      for (std::size_t i = level_begin(k); i < level_end(k); ++i) {
        part.values.push_back(clean_.values[i]);
        part.day += clean_days_[i] / part.count;
        part.mean += clean_.values[i] / part.count;
        part.square_scale += clean_.scales[i] * clean_.scales[i] / part.count;
      }
      for (std::size_t i = level_begin(k); i < level_end(k); ++i) {
        const double day = clean_days_[i] - part.day, value = clean_.values[i] - part.mean;
        all.squares += weight(i) * value * value;
        all.days_square += weight(i) * day * day;
        all.products += weight(i) * day * value;
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

  LevelShifts describe() const {
    LevelShifts found;
    found.outlying = outlying_;
    const Within all = within_levels();
    found.drift = drift_within_levels();
    const double slope = found.drift ? found.drift->per_day : 0;
    const double variance =
        std::max(all.squares - slope * all.products, 0.0) / std::max(all.freedom, 1.0);
    found.noise = std::sqrt(variance) * series_.scales.back();
    for (std::size_t k = 0; k < all.parts.size(); ++k) {
      const Part& part = all.parts[k];
      const Difference mean{part.mean,
                            std::sqrt(variance * inflation_ * part.square_scale / part.count),
                            all.freedom, part.values.size()};
      found.levels.push_back({k == 0 ? 0 : kept_[level_begin(k)],
                              k == changes_.size() ? days_.size() : kept_[level_end(k)], part.mean,
                              mean.interval()});
      if (k > 0) found.shifts.push_back(shift_at(k, all, variance, found.drift));
    }
    for (std::size_t i = 0; i < series_.scales.size(); ++i) {
      if (i == 0 || series_.scales[i] != series_.scales[i - 1]) {
        found.noise_levels.push_back({i, i, std::sqrt(variance) * series_.scales[i]});
      }
      found.noise_levels.back().end = i + 1;
    }
    if (found.noise_levels.size() == 1) found.noise_levels.clear();
    return found;
  }

  LevelShift shift_at(std::size_t k, const Within& all, double variance,
                      const std::optional<SeriesDrift>& drift) const {
    const Part &before = all.parts[k - 1], &after = all.parts[k];
    Difference size = independent_difference(after.values, before.values);
    size.standard_error *= std::sqrt(inflation_);
    if (drift) {
      const double days = after.day - before.day;
      size.mean -= drift->per_day * days;
      size.standard_error =
          std::sqrt(variance * inflation_ *
                    (before.square_scale / before.count + after.square_scale / after.count +
                     days * days / all.days_square));
      size.degrees_of_freedom = all.freedom - 1;
    }
    const std::size_t at = changes_[k - 1], begin = level_begin(k - 1), end = level_end(k);
    std::size_t earliest = at, latest = at;
    const double most =
        rest_of_split(begin, at, end) - 2 * std::log(kLeastLikelihood) * variance * inflation_;
    for (std::size_t other = begin + 1; other < end; ++other) {
      if (rest_of_split(begin, other, end) > most) continue;
      earliest = std::min(earliest, other);
      latest = std::max(latest, other);
    }
    return {kept_[at], kept_[earliest], kept_[latest], size.mean, size.interval()};
  }

  const Values& days_;
  ScaledSeries series_;
  const double inflation_;     // of variances of means
  double line_inflation_ = 1;  // the same, as far as sessions may resemble each other
  std::vector<std::size_t> outlying_, kept_;  // sessions
  ScaledSeries clean_;                        // of the kept ones
  Values clean_days_;
  std::vector<std::size_t> changes_;  // first of new levels, among the kept ones
};

// The step must exceed the largest of all stretches, and stand out of a line.
double detectable_shift(const LevelShifts& found, std::size_t sessions, double level) {
  const auto n = static_cast<double>(sessions);
  const double near = std::min(n, 2.0 * static_cast<double>(kNear));
  const double power = t_quantile(n - 2, 2 * kAimedPower - 1);
  const double chance = t_quantile(n - 2, 1 - level / count_stretches(sessions));
  const double line = t_quantile(near - 3, 1 - kDriftLevel);
  const std::size_t half = sessions / 2;
  const double alike = resemblance_inflation(
      plausible_resemblance(found.plausible_resemblance, sessions, 2), half, sessions - half);
  const double beside_level = (chance + power) * std::sqrt(4 / n * alike);
  const double alike_there = sessions < kEnoughForResemblance
                                 ? plausible_resemblance(found.plausible_resemblance, sessions, 1)
                                 : found.resemblance;
  const double beside_line =
      (line + power) * std::sqrt(16 / near * asymptotic_inflation(alike_there));
  double noise = 0;
  for (const NoiseLevel& each : found.noise_levels) noise = std::max(noise, each.noise);
  return std::max(noise, found.noise) * plausible_noise(n - 2) *
         std::max(beside_level, beside_line);
}

bool shows_none(double resemblance, std::size_t sessions) {
  return sessions >= kEnoughForResemblance &&
         resemblance < kLeastErrors / std::sqrt(static_cast<double>(sessions));
}

bool is_near(const LevelShift& a, const LevelShift& b) {
  return a.earliest <= b.latest && b.earliest <= a.latest;
}

}  // namespace

LevelShifts find_level_shifts(std::span<const double> days, std::span<const double> values,
                              double level) {
  const Values dates(days.begin(), days.end());
  ScaledSeries series{{values.begin(), values.end()}, {}};
  const auto weekdays = weekday_effects(days, series.values);
  for (std::size_t i = 0; weekdays && i < dates.size(); ++i) {
    series.values[i] -= (*weekdays)[weekday(dates[i])];
  }
  series.scales = estimate_scales(series.values, level);
  const double alike = resemblance_from_differences(series);
  const bool resemble = dates.size() >= kEnoughForResemblance &&
                        alike > 3 / std::sqrt(static_cast<double>(dates.size()));
  const double resemblance = resemble ? std::min(alike, 0.9) : 0;
  LevelSearch search(dates, series, asymptotic_inflation(resemblance));
  const LevelShifts if_independent = search.find(0, level);
  LevelShifts found = if_independent;
  double plausible = 0;
  for (int round = 0; round < 3; ++round) {  // fewer levels leave more resemblance
    const double estimate = search.residual_resemblance();
    if (shows_none(estimate, dates.size())) break;
    const double more = plausible_resemblance(estimate, dates.size(), kPlausibleErrors);
    if (more <= plausible) break;
    plausible = more;
    if (found.shifts.empty()) break;
    found = search.find(plausible, level);
  }
  for (const LevelShift& shift : if_independent.shifts) {
    const bool known =
        std::ranges::any_of(found.shifts, [&](const auto& each) { return is_near(each, shift); });
    if (!known && !resemble) found.possible.push_back(shift);
  }
  found.weekdays = weekdays;
  found.resemblance = resemblance;
  found.plausible_resemblance = plausible;
  found.detectable = detectable_shift(found, dates.size(), level);
  return found;
}

}  // namespace paceline

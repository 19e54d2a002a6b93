#include "analysis/statistics/level_shifts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace paceline {

namespace {

constexpr std::size_t kNear = 60;         // sessions on each side that a drift is fitted to
constexpr double kPlausibleErrors = 0.5;  // standard errors of resemblance
constexpr std::size_t kEnoughForResemblance = 60;  // sessions; fewer can show neither that nor none
constexpr double kLeastErrors = 2;                 // standard errors; less is none
constexpr int kMostUndated = 12;                   // rounds in which what has no date is looked for

using Values = std::vector<double>;

double two_sided(double t, double degrees_of_freedom) {
  return Difference{t, 1, degrees_of_freedom, 2}.p_value();
}

// One search for shifts, at a resemblance of neighbours.
class LevelSearch {
 public:
  LevelSearch(const Values& days, const ScaledSeries& series, double resemblance)
      : days_(days),
        series_(series),
        resemblance_(resemblance),
        inflation_(asymptotic_inflation(resemblance)) {}

  LevelShifts find(double resemblance, double level) {
    const bool can_show = days_.size() >= kEnoughForResemblance;
    line_inflation_ = can_show ? inflation_ : asymptotic_inflation(resemblance);
    for (const UndatedCurve& curve : curves_) take_out(curve, -1);
    curves_.clear();
    look_beside_drift(resemblance, level);
    for (int round = 0; round < kMostUndated && !changes_.empty(); ++round) {
      if (!widen_curve() && !add_curve()) break;
      look_beside_drift(resemblance, level);
    }
    look_for_modes(level);
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
  void look_beside_drift(double resemblance, double level) {
    look_for_changes(resemblance, level);
    if (const auto drift = drift_within_levels()) {  // it hides steps: once more without it
      const Values drifting = series_.values;
      for (std::size_t i = 0; i < days_.size(); ++i) series_.values[i] -= drift->per_day * days_[i];
      look_for_changes(resemblance, level);
      series_.values = drifting;
      keep_inlying();
    }
  }

  void take_out(const UndatedCurve& curve, double times) {
    for (std::size_t i = 0; i < days_.size(); ++i) series_.values[i] -= times * curve.values[i];
  }

  // Whether a curve could be exchanged for one that explains a change, too.
  bool widen_curve() {
    const double variance = independent_variance();
    for (UndatedCurve& known : curves_) {
      take_out(known, -1);
      const ScaledSeries with = select_sessions(series_, kept_);
      const Values of_kept = select_values(known.values, kept_);
      for (std::size_t k = 0; k < changes_.size(); ++k) {
        auto curve =
            find_rival(with, clean_days_, {changes_, k, k, of_kept}, variance, resemblance_);
        if (!curve) continue;
        known = of_all_sessions(std::move(*curve));
        take_out(known, 1);
        return true;
      }
      take_out(known, 1);
    }
    return false;
  }

  // Of what sessions do not have of their neighbours.
  double independent_variance() const {
    Residuals rest(clean_, resemblance_);
    rest.add(Values(kept_.size(), 1));
    const bool drifts = drift_within_levels().has_value();
    if (drifts) rest.add(clean_days_);
    for (const std::size_t change : changes_) rest.add(step_at(kept_.size(), change));
    const auto freedom = static_cast<double>(kept_.size() - 1 - changes_.size() - (drifts ? 1 : 0));
    return rest.squares() / freedom;
  }

  // Whether sessions on two levels in turn are likelier than all that was found.
  void look_for_modes(double level) {
    modes_.reset();
    if (changes_.empty() && curves_.empty()) return;
    const Within all = within_levels();
    const double changed =
        static_cast<double>(changes_.size() + 2 * curves_.size() + outlying_.size());
    const auto n = static_cast<double>(days_.size());
    // What sessions have of their neighbours is no noise.
    const double variance = independent_variance() * (1 - resemblance_ * resemblance_);
    const double cost = cost_of_squares(variance * n, days_.size()) + changed * std::log(n);
    Values values = series_.values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += undated_at(i);
    std::vector<std::size_t> found;
    for (const std::size_t change : changes_) found.push_back(kept_[change]);
    modes_ = find_modes(values, found, cost, level);
    if (!modes_) return;
    changes_.clear();
    for (const std::size_t at : found) {
      changes_.push_back(
          static_cast<std::size_t>(std::ranges::lower_bound(kept_, at) - kept_.begin()));
    }
    series_.values = values;
    curves_.clear();
    keep_inlying();
  }

  // Takes out the curve in place of a change, if there is any.
  bool add_curve() {
    std::optional<UndatedCurve> curve = find_undated();
    if (!curve) return false;
    take_out(*curve, 1);
    curves_.push_back(std::move(*curve));
    return true;
  }

  // Of the first changes that have a rival, or no date.
  std::optional<UndatedCurve> find_undated() const {
    const double variance = independent_variance();
    std::optional<UndatedCurve> best;
    for (std::size_t first = 0; first < changes_.size(); ++first) {
      for (std::size_t last = first; last < changes_.size(); ++last) {
        auto curve =
            find_rival(clean_, clean_days_, {changes_, first, last}, variance, resemblance_);
        if (curve && (!best || curve->cost < best->cost)) best = std::move(curve);
      }
    }
    if (best) return of_all_sessions(std::move(*best));
    const Within all = within_levels();
    const auto drift = drift_within_levels();
    for (std::size_t k = 0; k < changes_.size(); ++k) {
      const auto [earliest, latest] = find_dates(k, drift ? drift->per_day : 0);
      if (has_date({earliest, latest}, kept_.size())) continue;
      UndatedCurve vague{
          {UndatedKind::vague, earliest - 1, latest, size_of(k, drift, all, variance).mean, 0, 0},
          {}};
      for (std::size_t i = 0; i < kept_.size(); ++i) {
        vague.values.push_back(i >= changes_[k] ? vague.change.size : 0);
      }
      return of_all_sessions(std::move(vague));
    }
    return std::nullopt;
  }

  // From kept sessions to all.
  UndatedCurve of_all_sessions(UndatedCurve curve) const {
    const Values kept = std::move(curve.values);
    for (std::size_t i = 0, at = 0; i < days_.size(); ++i) {
      while (at + 1 < kept_.size() && kept_[at] < i) ++at;
      curve.values.push_back(kept[at]);
    }
    curve.change.begin = kept_[curve.change.begin];
    curve.change.end = kept_[curve.change.end];
    return curve;
  }

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

  ScaledSeries part(std::size_t begin, std::size_t end) const {
    std::vector<std::size_t> indices(end - begin);
    std::iota(indices.begin(), indices.end(), begin);
    return select_sessions(clean_, indices);
  }

  // Moves each change to where it explains most, its neighbours being fixed.
  void relocate() {
    for (std::size_t k = 0; k < changes_.size(); ++k) {
      const std::size_t begin = level_begin(k), end = level_end(k + 1);
      const Values explained = explained_by_steps(part(begin, end), resemblance_);
      for (std::size_t at = begin + kFewestInLevel; at + kFewestInLevel <= end; ++at) {
        if (explained[at - begin] > explained[changes_[k] - begin]) changes_[k] = at;
      }
    }
  }

  // Of the step in the least-squares fit of a line with a step to the sessions near a change.
  double p_beside_a_line(std::size_t change) const {
    const std::size_t at = changes_[change];
    const std::size_t begin = std::max(level_begin(change), at - std::min(at, kNear));
    const std::size_t end = std::min(level_end(change + 1), at + kNear);
    const ScaledSeries near = part(begin, end);
    Residuals beside(near);
    beside.add(Values(end - begin, 1));
    beside.add(std::span(clean_days_).subspan(begin, end - begin));
    const Residuals::Further found = beside.further(step_at(end - begin, at - begin));
    if (found.square <= 0) return 1;
    const double freedom = static_cast<double>(end - begin) - 3;
    const double rest = std::max(beside.squares() - found.explained, 1e-12 * found.explained);
    return two_sided(found.first / std::sqrt(rest / freedom / found.square * line_inflation_),
                     freedom);
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
    for (const UndatedCurve& curve : curves_) found.undated.push_back(curve.change);
    if (modes_) found.undated.push_back(*modes_);
    for (std::size_t k = 0; k < all.parts.size(); ++k) {
      const Part& part = all.parts[k];
      const Difference mean{part.mean,
                            std::sqrt(variance * inflation_ * part.square_scale / part.count),
                            all.freedom, part.values.size()};
      found.levels.push_back({k == 0 ? 0 : kept_[level_begin(k)],
                              k == changes_.size() ? days_.size() : kept_[level_end(k)], part.mean,
                              mean.interval()});
      add_undated(found.levels.back(), level_begin(k), level_end(k));
      found.now = part.mean + slope * (days_.back() - part.day) + undated_at(days_.size() - 1);
      if (k > 0) found.shifts.push_back(shift_at(k - 1, all, variance, found.drift));
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

  // Of change `k`, beside the others, the drift and what has no date.
  Difference size_of(std::size_t k, const std::optional<SeriesDrift>& drift, const Within& all,
                     double variance) const {
    if (!drift && curves_.empty()) {
      Difference size = independent_difference(all.parts[k + 1].values, all.parts[k].values);
      size.standard_error *= std::sqrt(inflation_);
      return size;
    }
    Residuals beside(clean_);
    beside.add(Values(kept_.size(), 1));
    if (drift) beside.add(clean_days_);
    for (const UndatedCurve& curve : curves_) beside.add(select_values(curve.values, kept_));
    for (const std::size_t other : changes_) {
      if (other != changes_[k]) beside.add(step_at(kept_.size(), other));
    }
    const Residuals::Further found = beside.further(step_at(kept_.size(), changes_[k]));
    if (found.square <= 0) return {0, 0, 0, 0};
    return {found.first, std::sqrt(variance * inflation_ / found.square), all.freedom - 1,
            kFewestInLevel};
  }

  StepDates find_dates(std::size_t k, double slope) const {
    const std::size_t begin = level_begin(k), end = level_end(k + 1);
    ScaledSeries flat = part(begin, end);
    for (std::size_t i = begin; i < end; ++i) flat.values[i - begin] -= slope * clean_days_[i];
    const auto [earliest, latest] =
        plausible_dates(flat, changes_[k] - begin, independent_variance(), resemblance_);
    return {begin + earliest, begin + latest};
  }

  LevelShift shift_at(std::size_t k, const Within& all, double variance,
                      const std::optional<SeriesDrift>& drift) const {
    const double slope = drift ? drift->per_day : 0;
    const Difference size = size_of(k, drift, all, variance);
    const auto [earliest, latest] = find_dates(k, slope);
    const std::size_t at = changes_[k];
    const Part &one = all.parts[k], &other = all.parts[k + 1];
    const double before = one.mean + slope * (clean_days_[at] - one.day);
    const double after = other.mean + slope * (clean_days_[at] - other.day);
    const double middle = (before + after) / 2 + undated_at(kept_[at]);
    return {kept_[at],      kept_[earliest],        kept_[latest],
            size.mean,      middle - size.mean / 2, middle + size.mean / 2,
            size.interval()};
  }

  void add_undated(SeriesLevel& level, std::size_t begin, std::size_t end) const {
    double mean = 0;
    for (std::size_t i = begin; i < end; ++i) {
      mean += undated_at(kept_[i]) / static_cast<double>(end - begin);
    }
    level.mean += mean;
    if (level.interval) level.interval = {level.interval->low + mean, level.interval->high + mean};
  }

  // What has no date, on a session.
  double undated_at(std::size_t session) const {
    double sum = 0;
    for (const UndatedCurve& curve : curves_) sum += curve.values[session];
    return sum;
  }

  const Values& days_;
  ScaledSeries series_;
  const double resemblance_;   // of neighbours
  const double inflation_;     // of variances of means
  double line_inflation_ = 1;  // the same, as far as sessions may resemble each other
  std::vector<std::size_t> outlying_, kept_;  // sessions
  ScaledSeries clean_;                        // of the kept ones
  Values clean_days_;
  std::vector<std::size_t> changes_;  // first of new levels, among the kept ones
  std::vector<UndatedCurve> curves_;  // taken out of the series
  std::optional<UndatedChange> modes_;
};

// The step must exceed the largest of all stretches, and stand out of a line and of a ramp.
double detectable_shift(const LevelShifts& found, std::size_t sessions, double level) {
  const auto n = static_cast<double>(sessions);
  const double near = std::min(n, 2.0 * static_cast<double>(kNear));
  const double power = t_quantile(n - 2, 2 * kAimedPower - 1);
  const double chance = t_quantile(n - 2, 1 - level / count_stretches(sessions));
  const double line = t_quantile(near - 3, 1 - kDriftLevel);
  const double alike =
      resemblance_inflation(plausible_resemblance(found.plausible_resemblance, sessions, 2),
                            sessions / 2, sessions - sessions / 2);
  const double beside_level = (chance + power) * std::sqrt(4 / n * alike);
  const double alike_there = sessions < kEnoughForResemblance
                                 ? plausible_resemblance(found.plausible_resemblance, sessions, 1)
                                 : found.resemblance;
  const double beside_line =
      (line + power) * std::sqrt(16 / near * asymptotic_inflation(alike_there));
  // A ramp of so many sessions leaves a twelfth of the squared step for each.
  const auto ramp = static_cast<double>(shortest_ramp(sessions));
  const double beside_ramp = (power + std::sqrt(power * power + kRivalMargin)) *
                             std::sqrt(12 / ramp * asymptotic_inflation(alike_there));
  double noise = 0;
  for (const NoiseLevel& each : found.noise_levels) noise = std::max(noise, each.noise);
  return std::max(noise, found.noise) * plausible_noise(n - 2) *
         std::max({beside_level, beside_line, beside_ramp});
}

bool shows_none(double resemblance, std::size_t sessions) {
  return sessions >= kEnoughForResemblance &&
         resemblance < kLeastErrors / std::sqrt(static_cast<double>(sessions));
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
  LevelSearch search(dates, series, resemblance);
  const LevelShifts if_independent = search.find(0, level);
  LevelShifts found = if_independent;
  double plausible = 0;
  for (int round = 0; round < 3; ++round) {  // fewer levels leave more resemblance
    const double estimate = search.residual_resemblance();
    if (shows_none(estimate, dates.size())) break;
    const double more = plausible_resemblance(estimate, dates.size(), kPlausibleErrors);
    if (more <= plausible) break;
    plausible = more;
    if (found.shifts.empty() && found.undated.empty()) break;
    found = search.find(plausible, level);
  }
  for (const LevelShift& shift : if_independent.shifts) {
    const bool known = std::ranges::any_of(found.shifts, [&](const LevelShift& each) {
      return each.earliest <= shift.latest && shift.earliest <= each.latest;
    });
    if (!known && !resemble) found.possible.push_back(shift);
  }
  found.weekdays = weekdays;
  found.resemblance = resemblance;
  found.plausible_resemblance = plausible;
  found.detectable = detectable_shift(found, dates.size(), level);
  return found;
}

}  // namespace paceline

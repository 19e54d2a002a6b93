#include "analysis/explain/fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "analysis/study/comparison.h"
#include "analysis/study/switches.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

using Points = std::vector<SpeedPoint>;

// A coefficient by least squares, and the standard error that its residuals give.
struct Coefficient {
  double value = 0, residual_error = 0, degrees_of_freedom = 0;
};

template <typename Law>
double off_by(const Points& points, Law law) {
  double most = 0;
  for (const auto& [n, s] : points) most = std::max(most, std::abs(law(n) / s - 1));
  return most;
}

// y = s x by least squares.
struct LinePoint {
  double x = 0, y = 0;
};

Coefficient fit_line(const std::vector<LinePoint>& points) {
  double xx = 0, xy = 0, rest = 0;
  for (const auto& [x, y] : points) {
    xx += x * x;
    xy += x * y;
  }
  const double slope = xy / xx;
  for (const auto& [x, y] : points) rest += (y - slope * x) * (y - slope * x);
  const auto freedom = static_cast<double>(points.size()) - 1;
  return {slope, freedom > 0 ? std::sqrt(rest / freedom / xx) : 0, freedom};
}

Coefficient amdahl_share(const Points& points) {
  std::vector<LinePoint> line;
  for (const auto& [n, s] : points) {
    line.push_back({s * (1 - 1 / n), s * (1 / s - 1 / n)});  // both over 1/S: relative errors
  }
  return fit_line(line);
}

Coefficient gustafson_share(const Points& points) {
  std::vector<LinePoint> line;
  for (const auto& [n, s] : points) line.push_back({(n - 1) / s, (n - s) / s});
  return fit_line(line);
}

struct UslCoefficients {
  Coefficient contention, coherence;
};

UslCoefficients usl_coefficients(const Points& points) {
  double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0;
  for (const auto& [n, s] : points) {
    const double weight = s / n, u = weight * (n - 1), v = weight * n * (n - 1);
    const double y = weight * (n / s - 1);
    uu += u * u;
    uv += u * v;
    vv += v * v;
    uy += u * y;
    vy += v * y;
  }
  const double determinant = uu * vv - uv * uv;
  const double a = (uy * vv - vy * uv) / determinant, b = (vy * uu - uy * uv) / determinant;
  double rest = 0;
  for (const auto& [n, s] : points) {
    const double off = s / n * (n / s - 1 - a * (n - 1) - b * n * (n - 1));
    rest += off * off;
  }
  const auto freedom = static_cast<double>(points.size()) - 2;
  const double variance = freedom > 0 ? rest / freedom : 0;
  return {{a, std::sqrt(variance * vv / determinant), freedom},
          {b, std::sqrt(variance * uu / determinant), freedom}};
}

// Infinite: it never gets slower.
double usl_peak(const UslCoefficients& usl) {
  const double a = usl.contention.value, b = usl.coherence.value;
  return b > 0 && a < 1 ? std::sqrt((1 - a) / b) : std::numeric_limits<double>::infinity();
}

Points mean_points(const SpeedUpRows& rows) {
  RowMeans means;
  for (const RowValues& row : rows.rows) {
    double mean = 0;
    for (const auto& value : row.values) mean += value[0] / static_cast<double>(row.values.size());
    means.push_back({mean});
  }
  return rows.points(means);
}

// What `fit` finds, with the error of the runs; of the residuals where they are beyond it.
std::optional<Known> fitted(const SpeedUpRows& rows, const Coefficient& found,
                            const std::function<double(const Points&)>& fit) {
  constexpr double kBeyond = 2;  // squared, as a ratio of variances: F of few degrees at 95 %
  const Difference noise =
      contrast(rows.rows, [&](const RowMeans& means) { return fit(rows.points(means)); });
  return judged(noise, rows.doubt)
      .match(
          [&](const Known& known) -> std::optional<Known> {
            double half = (known.interval.high - known.interval.low) / 2;
            if (!std::isfinite(half)) return std::nullopt;
            if (found.residual_error > kBeyond * noise.standard_error) {
              half = std::max(half, t_quantile(found.degrees_of_freedom) * found.residual_error);
            }
            return Known{found.value, {found.value - half, found.value + half}};
          },
          [](double, const WeakEvidence&) -> std::optional<Known> { return std::nullopt; });
}

}  // namespace

std::vector<SpeedPoint> SpeedUpRows::points(const RowMeans& means) const {
  std::vector<SpeedPoint> all;
  for (const Size& size : sizes) {
    all.push_back({size.replicas, std::exp(means[size.base][0] - means[size.row][0])});
  }
  return all;
}

std::size_t SpeedUpRows::count_sizes() const {
  std::set<double> found;
  for (const Size& size : sizes) found.insert(size.replicas);
  return found.size();
}

SpeedUpRows speed_up_rows(const Study& study, const Comparison& comparison,
                          const ScalingSeries& series) {
  SpeedUpRows result;
  std::map<const Row*, std::size_t> known;
  const auto index_of = [&](const Row& row) {
    const auto [it, is_new] = known.emplace(&row, result.rows.size());
    if (is_new) {
      result.rows.push_back(log_costs(row, comparison.rates));
      result.doubt.add(row);
    }
    return it->second;
  };
  for (const SizeGroup& group : series.groups) {
    for (const RowFacts* row : group.rows) {
      // The laws speak of one replica.
      const bool is_of_one = study.rows[row->speed_up->base].first()->layout.gpus == 1;
      if (!is_of_one || group.gpus < 2) continue;
      const std::size_t base = index_of(study.rows[row->speed_up->base]);
      result.sizes.push_back({static_cast<double>(group.gpus), base, index_of(*row->row)});
    }
  }
  return result;
}

std::optional<Fitted> fit_amdahl(const SpeedUpRows& rows) {
  if (rows.sizes.empty()) return std::nullopt;
  const Points points = mean_points(rows);
  const auto share =
      fitted(rows, amdahl_share(points), [](const Points& at) { return amdahl_share(at).value; });
  if (!share) return std::nullopt;
  const double s = share->value;
  return Fitted{*share, off_by(points, [s](double n) { return 1 / (s + (1 - s) / n); })};
}

std::optional<Fitted> fit_gustafson(const SpeedUpRows& rows) {
  if (rows.sizes.empty()) return std::nullopt;
  const Points points = mean_points(rows);
  const auto share = fitted(rows, gustafson_share(points),
                            [](const Points& at) { return gustafson_share(at).value; });
  if (!share) return std::nullopt;
  const double s = share->value;
  return Fitted{*share, off_by(points, [s](double n) { return n - s * (n - 1); })};
}

std::optional<UslFit> fit_usl(const SpeedUpRows& rows) {
  if (rows.count_sizes() < 2 || rows.sizes.size() < 3) return std::nullopt;
  const Points points = mean_points(rows);
  const UslCoefficients found = usl_coefficients(points);
  const auto contention = fitted(rows, found.contention, [](const Points& at) {
    return usl_coefficients(at).contention.value;
  });
  const auto coherence = fitted(
      rows, found.coherence, [](const Points& at) { return usl_coefficients(at).coherence.value; });
  if (!contention || !coherence) return std::nullopt;
  const double a = contention->value, b = coherence->value;
  UslFit fit{*contention, *coherence, 0, std::nullopt};
  fit.off = off_by(points, [a, b](double n) { return n / (1 + a * (n - 1) + b * n * (n - 1)); });
  if (lies_above(coherence->interval, 0) && a < 1) {
    const auto peak = fitted(rows, {std::log(usl_peak(found)), 0, 0}, [](const Points& at) {
      return std::log(usl_peak(usl_coefficients(at)));
    });
    if (peak) {
      fit.peak = Known{std::exp(peak->value),
                       {std::exp(peak->interval.low), std::exp(peak->interval.high)}};
    }
  }
  return fit;
}

Counterfactuals::Counterfactuals(const Study& study) {
  for (const Switch& what : switches()) {
    Switched& switched = off_.emplace_back();
    switched.rule = MatchRule::but_for(what.parameter, what.follows);
    for (const Row& row : study.rows) {
      if (!is_off(row.first(), what)) continue;
      switched.rows[row.first().key(switched.rule)].push_back(&row);
    }
  }
}

std::vector<Counterfactual> Counterfactuals::of(const Row& row, bool rates) const {
  std::vector<Counterfactual> found;
  if (is_switched_off(row.first())) return found;
  for (std::size_t i = 0; i < off_.size(); ++i) {
    if (off_[i].rows.empty()) continue;
    const Switch& what = switches()[i];
    const auto others = off_[i].rows.find(row.first().key(off_[i].rule));
    if (others == off_[i].rows.end()) continue;
    for (const Row* other : others->second) {
      found.push_back(
          {what.without, what.cost,
           judged(compute_ratio(row, *other, rates).estimate, find_weak_evidence(row, *other)),
           other});
    }
  }
  return found;
}

}  // namespace paceline

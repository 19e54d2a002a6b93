#include "analysis/explain/fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

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

// N/S - 1 = a (N - 1) + b `second`(N), by least squares of relative errors.
struct TwoTerms {
  double a = 0, b = 0, rest = 0;  // rest: sum of squares
  double aa = 0, ab = 0, bb = 0;  // (co)variances that the residuals give
  double degrees_of_freedom = 0;

  Coefficient first() const { return {a, std::sqrt(aa), degrees_of_freedom}; }
  Coefficient second() const { return {b, std::sqrt(bb), degrees_of_freedom}; }
};

template <typename Second>
TwoTerms fit_two_terms(const Points& points, Second second) {
  double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0;
  for (const auto& [n, s] : points) {
    const double weight = s / n, u = weight * (n - 1), v = weight * second(n);
    const double y = weight * (n / s - 1);
    uu += u * u;
    uv += u * v;
    vv += v * v;
    uy += u * y;
    vy += v * y;
  }
  const double determinant = uu * vv - uv * uv;
  TwoTerms found{.a = (uy * vv - vy * uv) / determinant, .b = (vy * uu - uy * uv) / determinant};
  for (const auto& [n, s] : points) {
    const double off = s / n * (n / s - 1 - found.a * (n - 1) - found.b * second(n));
    found.rest += off * off;
  }
  found.degrees_of_freedom = static_cast<double>(points.size()) - 2;
  const double variance = found.degrees_of_freedom > 0 ? found.rest / found.degrees_of_freedom : 0;
  found.aa = variance * vv / determinant;
  found.ab = -variance * uv / determinant;
  found.bb = variance * uu / determinant;
  return found;
}

TwoTerms usl_terms(const Points& points) {
  return fit_two_terms(points, [](double n) { return n * (n - 1); });
}

// Of the number of replicas; infinite: it never gets slower.
Coefficient log_peak(const TwoTerms& usl) {
  const auto& [a, b, rest, aa, ab, bb, freedom] = usl;
  if (b <= 0 || a >= 1) return {std::numeric_limits<double>::infinity(), 0, freedom};
  const double by_a = -0.5 / (1 - a), by_b = -0.5 / b;
  return {0.5 * std::log((1 - a) / b),
          std::sqrt(by_a * by_a * aa + 2 * by_a * by_b * ab + by_b * by_b * bb), freedom};
}

struct Rival {
  std::string name;
  double rest = std::numeric_limits<double>::infinity();  // sum of squares of relative errors

  void consider(const char* kind, double from, double with) {
    if (with < rest) *this = {fmt::format("a {} from {:g} replicas on", kind, from), with};
  }
};

// A plateau that begins at `from`: below it there is contention only.
double rest_of_plateau(const Points& points, double from) {
  std::vector<LinePoint> rising, flat;
  for (const auto& [n, s] : points) {
    if (n < from) {
      rising.push_back({s / n * (n - 1), s / n * (n / s - 1)});
    } else {
      flat.push_back({s, 1});
    }
  }
  double rest = 0;
  for (const auto& part : {rising, flat}) {
    const double slope = part.empty() ? 0 : fit_line(part).value;
    for (const auto& [x, y] : part) rest += (y - slope * x) * (y - slope * x);
  }
  return rest;
}

Rival best_rival(const Points& points) {
  const auto sizes = distinct(points, &SpeedPoint::replicas);
  Rival best;
  for (const double from : sizes) {
    if (from < *sizes.rbegin()) best.consider("plateau", from, rest_of_plateau(points, from));
    if (from == *sizes.begin()) continue;
    const TwoTerms knee = fit_two_terms(points, [from](double n) { return n < from ? 0.0 : 1.0; });
    if (knee.b > 0) best.consider("knee", from, knee.rest);
  }
  return best;
}

Points mean_points(const SpeedUpRows& rows) {
  return rows.points(comparable_means(rows.rows));
}

constexpr double kBeyond = 2;  // squared, as a ratio of variances: F of few degrees at 95 %

// What `fit` finds, with the error of the runs; of the residuals where they are beyond it.
std::optional<Known> fitted(const SpeedUpRows& rows, const Coefficient& found,
                            const std::function<double(const Points&)>& fit) {
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

// Whether the largest size is slower than the fastest, beyond noise, and not only because it is on
// several nodes. `bracket`: the sizes beside the fastest.
bool gets_slower(const SpeedUpRows& rows, const Points& points, Interval& bracket) {
  std::map<double, std::size_t> fastest_of;  // by size
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [it, is_new] = fastest_of.emplace(points[i].replicas, i);
    if (!is_new && points[i].speed_up > points[it->second].speed_up) it->second = i;
  }
  const auto fastest = std::ranges::max_element(
      fastest_of, {}, [&](const auto& each) { return points[each.second].speed_up; });
  const auto largest = std::prev(fastest_of.end());
  if (fastest == largest) return false;
  bracket = {fastest == fastest_of.begin() ? 1 : std::prev(fastest)->first,
             std::next(fastest)->first};
  const SpeedUpRows::Size &few = rows.sizes[fastest->second], &many = rows.sizes[largest->second];
  if (few.nodes != many.nodes && few.nodes <= 1) return false;
  return is_above(contrast({rows.rows[few.row], rows.rows[many.row]},
                           [](const RowMeans& means) { return means[1][0] - means[0][0]; }),
                  0);
}

std::optional<Known> find_peak(const SpeedUpRows& rows, const Points& points, const TwoTerms& usl,
                               const Rival& rival) {
  Interval bracket;
  if (rival.rest < usl.rest || !gets_slower(rows, points, bracket)) return std::nullopt;
  auto peak =
      fitted(rows, log_peak(usl), [](const Points& at) { return log_peak(usl_terms(at)).value; });
  if (!peak) return std::nullopt;
  for (double* each : {&peak->value, &peak->interval.low, &peak->interval.high}) {
    *each = std::exp(*each);
  }
  const bool is_inside = bracket.low <= peak->value && peak->value <= bracket.high;
  return is_inside ? peak : std::nullopt;
}

}  // namespace

std::vector<SpeedPoint> SpeedUpRows::points(const RowMeans& means) const {
  return mapped(sizes, [&](const Size& size) {
    return SpeedPoint{size.replicas, std::exp(means[size.base][0] - means[size.row][0])};
  });
}

std::size_t SpeedUpRows::count_sizes() const {
  return distinct(sizes, &Size::replicas).size();
}

SpeedUpRows speed_up_rows(const Study& study, const Comparison& comparison,
                          const ScalingSeries& series) {
  SpeedUpRows result;
  std::map<const Row*, std::size_t> known;
  const auto index_of = [&](const Row& row) {
    const auto [it, is_new] = known.emplace(&row, result.rows.size());
    if (is_new) result.rows.push_back(log_costs(row, comparison.rates));
    return it->second;
  };
  for (const SizeGroup& group : series.groups) {
    for (const RowFacts* row : group.rows) {
      // The laws speak of one replica.
      const bool is_of_one = study.rows[row->speed_up->base].first()->layout.gpus == 1;
      if (!is_of_one || group.gpus < 2) continue;
      const std::size_t base = index_of(study.rows[row->speed_up->base]);
      result.sizes.push_back({static_cast<double>(group.gpus), base, index_of(*row->row),
                              row->run()->layout.nodes.value_or(0)});
      result.doubt.add(find_weak_evidence(study.rows[row->speed_up->base], *row->row));
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
  const TwoTerms found = usl_terms(points);
  const auto contention =
      fitted(rows, found.first(), [](const Points& at) { return usl_terms(at).a; });
  const auto coherence =
      fitted(rows, found.second(), [](const Points& at) { return usl_terms(at).b; });
  if (!contention || !coherence) return std::nullopt;
  const double a = contention->value, b = coherence->value;
  UslFit fit{*contention, *coherence, 0, {}, std::nullopt};
  fit.off = off_by(points, [a, b](double n) { return n / (1 + a * (n - 1) + b * n * (n - 1)); });
  const Rival rival = best_rival(points);
  const double noise = contrast(rows.rows, [&](const RowMeans& means) {
                         return usl_terms(rows.points(means)).b;
                       }).standard_error;
  const bool is_beyond_noise = std::sqrt(found.bb) > kBeyond * noise;
  if (is_beyond_noise && kBeyond * kBeyond * rival.rest < found.rest) fit.rival = rival.name;
  if (lies_above(coherence->interval, 0) && a < 1) {
    fit.peak = find_peak(rows, points, found, rival);
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

#include "analysis/explain/fits.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace paceline {

namespace {

std::vector<SpeedPoint> of_several(const std::vector<SpeedPoint>& points) {
  std::vector<SpeedPoint> kept;
  for (const SpeedPoint& point : points) {
    if (point.replicas > 1) kept.push_back(point);
  }
  return kept;
}

Fitted fitted(double value, double variance, double degrees_of_freedom) {
  if (degrees_of_freedom < 1) return {value, std::nullopt, 0};
  const double half_width = t_quantile(degrees_of_freedom) * std::sqrt(variance);
  return {value, Interval{value - half_width, value + half_width}, 0};
}

template <typename Law>
double off_by(const std::vector<SpeedPoint>& points, Law law) {
  double most = 0;
  for (const auto& [n, s] : points) most = std::max(most, std::abs(law(n) / s - 1));
  return most;
}

// y = s x by least squares.
struct LinePoint {
  double x = 0, y = 0;
};

std::optional<Fitted> fit_line(const std::vector<LinePoint>& points) {
  if (points.empty()) return std::nullopt;
  double xx = 0, xy = 0, rest = 0;
  for (const auto& [x, y] : points) {
    xx += x * x;
    xy += x * y;
  }
  const double slope = xy / xx;
  for (const auto& [x, y] : points) rest += (y - slope * x) * (y - slope * x);
  const auto freedom = static_cast<double>(points.size()) - 1;
  return fitted(slope, freedom > 0 ? rest / freedom / xx : 0, freedom);
}

}  // namespace

std::optional<Fitted> fit_amdahl(const std::vector<SpeedPoint>& points) {
  std::vector<LinePoint> line;
  for (const auto& [n, s] : of_several(points)) {
    line.push_back({s * (1 - 1 / n), s * (1 / s - 1 / n)});  // both over 1/S: relative errors
  }
  auto fit = fit_line(line);
  if (!fit) return fit;
  const double share = fit->value;
  fit->off =
      off_by(of_several(points), [share](double n) { return 1 / (share + (1 - share) / n); });
  return fit;
}

std::optional<Fitted> fit_gustafson(const std::vector<SpeedPoint>& points) {
  std::vector<LinePoint> line;
  for (const auto& [n, s] : of_several(points)) line.push_back({(n - 1) / s, (n - s) / s});
  auto fit = fit_line(line);
  if (!fit) return fit;
  const double share = fit->value;
  fit->off = off_by(of_several(points), [share](double n) { return n - share * (n - 1); });
  return fit;
}

std::optional<UslFit> fit_usl(const std::vector<SpeedPoint>& all) {
  const std::vector<SpeedPoint> points = of_several(all);
  std::set<double> sizes;
  double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0;
  for (const auto& [n, s] : points) {
    sizes.insert(n);
    const double weight = s / n, u = weight * (n - 1), v = weight * n * (n - 1);
    const double y = weight * (n / s - 1);
    uu += u * u;
    uv += u * v;
    vv += v * v;
    uy += u * y;
    vy += v * y;
  }
  if (sizes.size() < 2) return std::nullopt;
  const double determinant = uu * vv - uv * uv;
  const double a = (uy * vv - vy * uv) / determinant, b = (vy * uu - uy * uv) / determinant;
  double rest = 0;
  for (const auto& [n, s] : points) {
    const double off = s / n * (n / s - 1 - a * (n - 1) - b * n * (n - 1));
    rest += off * off;
  }
  const auto freedom = static_cast<double>(points.size()) - 2;
  if (freedom < 1) return std::nullopt;  // two points fit two unknowns, whatever they are
  const double variance = freedom > 0 ? rest / freedom : 0;
  UslFit fit{fitted(a, variance * vv / determinant, freedom),
             fitted(b, variance * uu / determinant, freedom), 0, 0};
  fit.off = off_by(points, [a, b](double n) { return n / (1 + a * (n - 1) + b * n * (n - 1)); });
  if (b > 0 && a < 1) fit.peak = std::sqrt((1 - a) / b);
  return fit;
}

std::vector<SpeedPoint> speed_points(const ScalingSeries& series) {
  std::vector<SpeedPoint> points;
  for (const SizeGroup& group : series.groups) {
    for (const RowFacts* row : group.rows) {
      points.push_back({static_cast<double>(group.gpus), row->speed_up->ratio.estimate.value});
    }
  }
  return points;
}

}  // namespace paceline

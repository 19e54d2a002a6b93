#include "analysis/predict/laws.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace paceline {

std::vector<Law> laws_for(Scaling scaling, std::size_t sizes) {
  constexpr std::size_t kSizesOfUsl = 3;
  const auto one = [](double) { return 1.0; };
  const auto others = [](double p) { return p - 1; };
  const auto pairs = [](double p) { return p * (p - 1); };
  std::vector<Law> laws = {{"ideal", {one}}, {"Amdahl", {one, others}}};
  if (sizes >= kSizesOfUsl) laws.push_back({"USL", {one, others, pairs}});
  if (scaling == Scaling::strong) {
    laws.push_back({"log p", {one, [](double p) { return p * std::log2(p); }}});
    laws.push_back({"sqrt p", {one, [](double p) { return p * (std::sqrt(p) - 1); }}});
    return laws;
  }
  laws.push_back({"log p", {one, [](double p) { return std::log2(p); }}});
  laws.push_back({"sqrt p", {one, [](double p) { return std::sqrt(p) - 1; }}});
  laws.push_back({"ring", {one, [](double p) { return (p - 1) / p; }, others}});
  return laws;
}

FittedLaw::FittedLaw(Law law, const std::vector<SizedCost>& points) : law_(std::move(law)) {
  std::vector<CostPoint> costs;
  for (const SizedCost& point : points) {
    CostPoint cost{{}, point.cost};
    for (const auto& term : law_.terms) cost.terms.push_back(term(point.replicas));
    costs.push_back(std::move(cost));
  }
  coefficients_ = nonnegative_fit(costs);
}

double FittedLaw::at(double replicas) const {
  double cost = 0;
  for (std::size_t i = 0; i < coefficients_.size(); ++i) {
    cost += coefficients_[i] * law_.terms[i](replicas);
  }
  return cost;
}

namespace {

constexpr double kLawMisses = 0.1;  // s
constexpr double kMissesADoubling = 0.025, kMissesADoublingOfTwo = 0.08;

double doublings_to_nearest(const std::vector<SizedCost>& points, double replicas) {
  double least = std::numeric_limits<double>::infinity();
  for (const SizedCost& point : points) {
    least = std::min(least, std::abs(std::log2(replicas / point.replicas)));
  }
  return least;
}

using Matrix = std::vector<std::vector<double>>;

constexpr double kSingular = 1e-9;  // pivots below this, of columns of length one

// Gauss with pivoting. Empty: singular.
std::optional<std::vector<double>> solved(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    }
    if (std::abs(a[pivot][k]) < kSingular) return std::nullopt;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

// The points with all divided by their scales, and each column scaled to length one.
class Relative {
 public:
  explicit Relative(const std::vector<CostPoint>& points) {
    const std::size_t terms = points.empty() ? 0 : points.front().terms.size();
    columns_.assign(terms, {});
    for (const CostPoint& point : points) targets_.push_back(point.value / find_scale(point));
    lengths_.assign(terms, 0);
    for (std::size_t t = 0; t < terms; ++t) {
      for (const CostPoint& point : points)
        columns_[t].push_back(point.terms[t] / find_scale(point));
      for (const double x : columns_[t]) lengths_[t] += x * x;
      lengths_[t] = std::sqrt(lengths_[t]);
      for (double& x : columns_[t]) x /= lengths_[t] > 0 ? lengths_[t] : 1;
    }
  }

  std::size_t terms() const { return columns_.size(); }
  double length(std::size_t term) const { return lengths_[term]; }

  // With these terms only. Empty: they cannot be distinguished, or one is not above zero.
  std::optional<std::vector<double>> fit(const std::vector<std::size_t>& used) const {
    Matrix a(used.size(), std::vector<double>(used.size()));
    std::vector<double> b(used.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (lengths_[used[i]] == 0) return std::nullopt;
      for (std::size_t j = 0; j < used.size(); ++j) a[i][j] = dot(used[i], used[j]);
      for (std::size_t p = 0; p < targets_.size(); ++p) b[i] += columns_[used[i]][p] * targets_[p];
    }
    auto scaled = solved(std::move(a), std::move(b));
    if (!scaled) return std::nullopt;
    for (const double c : *scaled) {
      if (c <= 0) return std::nullopt;
    }
    return scaled;
  }
  double error(const std::vector<std::size_t>& used, const std::vector<double>& scaled) const {
    double sum = 0;
    for (std::size_t p = 0; p < targets_.size(); ++p) {
      double off = -targets_[p];
      for (std::size_t i = 0; i < used.size(); ++i) off += scaled[i] * columns_[used[i]][p];
      sum += off * off;
    }
    return sum;
  }

 private:
  static double find_scale(const CostPoint& point) {
    return point.scale > 0 ? point.scale : point.value;
  }
  double dot(std::size_t i, std::size_t j) const {
    double sum = 0;
    for (std::size_t p = 0; p < targets_.size(); ++p) sum += columns_[i][p] * columns_[j][p];
    return sum;
  }

  Matrix columns_;
  std::vector<double> lengths_, targets_;
};

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

double Forecast::by_usl_alone(double replicas) const {
  const double unit = points_.front().cost;
  const auto terms = [](double p, double scale) {
    return std::vector<double>{1 / scale, (p - 1) / scale, p * (p - 1) / scale};
  };
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  Matrix squares(3, std::vector<double>(3));
  std::vector<double> sums(3);
  for (const SizedCost& point : points_) {
    const std::vector<double> of_point = terms(point.replicas, point.cost / unit);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      for (std::size_t j = 0; j < sums.size(); ++j) squares[i][j] += of_point[i] * of_point[j];
      sums[i] += of_point[i];
    }
  }
  const std::vector<double> here = terms(replicas, 1);
  const auto fit = solved(squares, sums), spread = solved(squares, here);
  if (!fit || !spread) return 0;
  const double error = noise_ * std::sqrt(std::max(0.0, product(here, *spread)));
  return unit * (product(here, *fit) + kNormal90 * error);
}

std::optional<double> held_out_error(std::vector<SizedCost> points, Scaling scaling) {
  if (points.size() < 2) return std::nullopt;
  const SizedCost last = points.back();
  points.pop_back();
  if (points.size() == 1) return points.front().cost / last.cost - 1;
  return Forecast(std::move(points), scaling).at(last.replicas) / last.cost - 1;
}

std::vector<double> nonnegative_fit(const std::vector<CostPoint>& points) {
  const Relative relative(points);
  std::vector<double> best(relative.terms());
  double least = relative.error({}, {});
  for (std::size_t set = 1; set < (std::size_t{1} << relative.terms()); ++set) {
    std::vector<std::size_t> used;
    for (std::size_t t = 0; t < relative.terms(); ++t) {
      if (set >> t & 1) used.push_back(t);
    }
    const auto scaled = relative.fit(used);
    if (!scaled) continue;
    const double error = relative.error(used, *scaled);
    if (error >= least - kSingular) continue;  // fewer terms come first
    least = error;
    std::fill(best.begin(), best.end(), 0.0);
    for (std::size_t i = 0; i < used.size(); ++i) {
      best[used[i]] = (*scaled)[i] / relative.length(used[i]);
    }
  }
  return best;
}

}  // namespace paceline

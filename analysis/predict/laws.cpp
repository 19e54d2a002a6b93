#include "analysis/predict/laws.h"

#include <cmath>

#include "analysis/predict/nonnegative_fit.h"

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

}  // namespace paceline

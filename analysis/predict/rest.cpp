#include "analysis/predict/rest.h"

#include <algorithm>

namespace paceline {

double ReplayResidual::with_rest(double replayed, double sums) const {
  return std::max(replayed + seconds(sums), replayed / 10);
}

namespace {

double squares_missed(const ReplayResidual& rest, const std::vector<ComparedSize>& sizes) {
  double missed = 0;
  for (const ComparedSize& size : sizes) {
    const double by = size.measured - size.replayed - rest.seconds(size.sums);
    missed += by * by;
  }
  return missed;
}

}  // namespace

ReplayResidual fit_residual(const std::vector<ComparedSize>& sizes) {
  if (sizes.empty()) return {};
  double lacks = 0, products = 0, squares = 0;
  for (const ComparedSize& size : sizes) {
    lacks += size.measured - size.replayed;
    products += (size.measured - size.replayed) * size.sums;
    squares += size.sums * size.sums;
  }
  const ReplayResidual fixed{lacks / static_cast<double>(sizes.size()), 0};
  if (sizes.size() == 1 || squares == 0) return fixed;
  const ReplayResidual share{0, products / squares};
  return squares_missed(share, sizes) < squares_missed(fixed, sizes) ? share : fixed;
}

}  // namespace paceline

// Least squares of relative errors with coefficients that are not negative: costs.
#pragma once

#include <vector>

namespace paceline {

// A measurement `value` > 0, the sum of the coefficients times `terms`.
struct CostPoint {
  std::vector<double> terms;  // as many for each point
  double value = 0;
  double scale = 0;  // the error is divided by it; 0: by the value
};

// Minimizes the sum of ((sum of c_i terms_i - value) / scale)^2 over c_i >= 0, by trying every set
// of coefficients that are above zero, so for a handful of terms. Of terms that the points cannot
// tell apart, the first gets all. Zeros if no term helps.
std::vector<double> nonnegative_fit(const std::vector<CostPoint>& points);

}  // namespace paceline

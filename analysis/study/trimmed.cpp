#include "analysis/study/trimmed.h"

#include <vector>

#include "analysis/statistics/robust.h"

namespace paceline {

namespace {

std::vector<double> first_quantity(const RowValues& row) {
  std::vector<double> values;
  for (const std::vector<double>& unit : row.values) values.push_back(unit.front());
  return values;
}

}  // namespace

Difference trimmed_contrast(const RowValues& base, const RowValues& row) {
  std::vector<double> differences;
  for (const RowMeans& means : paired_means({base, row})) {
    differences.push_back(means[1][0] - means[0][0]);
  }
  Difference result = differences.empty()
                          ? trimmed_difference(first_quantity(row), first_quantity(base))
                          : trimmed_difference(differences);
  const bool is_valid = !base.tainted && !row.tainted && base.stopping == Stopping::fixed &&
                        row.stopping == Stopping::fixed;
  if (!is_valid) result.degrees_of_freedom = 0;
  return result;
}

}  // namespace paceline

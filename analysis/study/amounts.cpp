#include "analysis/study/amounts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "analysis/study/contrast.h"

namespace paceline {

namespace {

std::optional<double> one_run(const Run&) {
  return 1;
}

struct RunSums {
  std::vector<double> above, below;  // of each run, or of each session if they are pooled
};

RunSums sum_runs(const Row& row, const RunFact& above, const RunFact& below) {
  RunSums result;
  std::map<std::string, std::size_t> sessions;
  for (const Run& run : row.runs) {
    const auto a = above(run), b = below(run);
    if (!a || !b) continue;
    const auto [session, is_new] = sessions.emplace(run.session, result.above.size());
    if (!row.pooled || is_new) {
      result.above.push_back(*a);
      result.below.push_back(*b);
    } else {
      result.above[session->second] += *a;
      result.below[session->second] += *b;
    }
  }
  return result;
}

// Values whose mean is the logarithm of the row's ratio, and whose spread is that of its error.
RowValues linearized(const Row& row, const RunFact& above, const RunFact& below) {
  const double ratio = ratio_of_sums(row, above, below)->value;
  double mean_below = 0;
  for (const Run& run : row.runs) mean_below += *below(run) / static_cast<double>(row.runs.size());
  return collect_values(row, [=](const Run& run) {
    const double off = (*above(run) - ratio * *below(run)) / (ratio * mean_below);
    return std::vector<double>{std::log(ratio) + off};
  });
}

}  // namespace

std::optional<Estimate> ratio_of_sums(const Row& row, const RunFact& above, const RunFact& below) {
  const RunSums all = sum_runs(row, above, below);
  if (all.above.empty()) return std::nullopt;
  Estimate result = ratio_of_sums(all.above, all.below, find_stopping(row));
  if (row.tainted) result.interval.reset();
  return result;
}

std::optional<Estimate> mean_amount(const Row& row, const RunFact& amount) {
  return ratio_of_sums(row, amount, one_run);
}

Ratio compare_sums(const Row& base, const Row& row, const RunFact& above, const RunFact& below) {
  const std::vector<RowValues> rows = {linearized(base, above, below),
                                       linearized(row, above, below)};
  const Estimate ratio =
      as_factor(contrast(rows, [](const RowMeans& means) { return means[1][0] - means[0][0]; }));
  if (!ratio.interval) return {ratio, RatioKind::single};
  return {ratio, paired_means(rows).empty() ? RatioKind::welch : RatioKind::paired};
}

Ratio compare_amounts(const Row& base, const Row& row, const RunFact& amount) {
  return compare_sums(base, row, amount, one_run);
}

std::size_t runs_with(const Row& row, const RunFact& fact) {
  return static_cast<std::size_t>(
      std::ranges::count_if(row.runs, [&](const Run& run) { return fact(run).has_value(); }));
}

}  // namespace paceline

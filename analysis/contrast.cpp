#include "analysis/contrast.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace paceline {

namespace {

constexpr double kRounding = 1e-9;  // runs may be alike to the last digit

using Values = std::vector<double>;
using Round = std::pair<std::string, int>;

// The mean of all but the run `without`; `values.size()`: of all.
Values mean_without(const std::vector<Values>& values, std::size_t without) {
  Values mean(values.front().size(), 0.0);
  const auto count = static_cast<double>(values.size() - (without < values.size() ? 1 : 0));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == without) continue;
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += values[i][k] / count;
  }
  return mean;
}

Values mean_of(const std::vector<Values>& values) {
  return mean_without(values, values.size());
}

// Means a round; empty where a run belongs to none.
std::map<Round, Values> means_by_round(const RowValues& row) {
  std::map<Round, std::vector<Values>> runs;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (row.rounds[i].first.empty() || row.rounds[i].second < 1) return {};
    runs[row.rounds[i]].push_back(row.values[i]);
  }
  std::map<Round, Values> means;
  for (const auto& [round, values] : runs) means[round] = mean_of(values);
  return means;
}

// The means of each shared round, or nothing where pairs would leave runs out or are too few.
std::vector<RowMeans> shared_rounds(const std::vector<RowValues>& rows) {
  std::vector<std::map<Round, Values>> all;
  std::size_t fewest = rows.front().values.size();
  for (const RowValues& row : rows) {
    all.push_back(means_by_round(row));
    fewest = std::min(fewest, all.back().size());
  }
  std::vector<RowMeans> shared;
  for (const auto& [round, values] : all.front()) {
    RowMeans means;
    for (const auto& rounds : all) {
      const auto it = rounds.find(round);
      if (it != rounds.end()) means.push_back(it->second);
    }
    if (means.size() == rows.size()) shared.push_back(std::move(means));
  }
  if (shared.size() < kFewestRuns || shared.size() < fewest) return {};
  return shared;
}

Difference independent(const std::vector<RowValues>& rows, const OfMeans& what) {
  RowMeans means;
  for (const RowValues& row : rows) means.push_back(mean_of(row.values));
  Difference result{what(means), 0, 0, rows.front().values.size()};
  double variance = 0, over_freedom = 0, freedom = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t runs = rows[i].values.size();
    result.count = std::min(result.count, runs);
    if (runs < 2) return {result.mean, 0, 0, 1};
    const Values kept = means[i];
    Values without;
    for (std::size_t run = 0; run < runs; ++run) {
      means[i] = mean_without(rows[i].values, run);
      without.push_back(what(means));
    }
    means[i] = kept;
    double mean = 0, part = 0;
    for (const double value : without) mean += value / static_cast<double>(runs);
    for (const double value : without) part += (value - mean) * (value - mean);
    const auto others = static_cast<double>(runs - 1);
    part *= others / static_cast<double>(runs);
    variance += part;
    over_freedom += part * part / others;
    freedom += others;
  }
  result.standard_error = std::sqrt(variance);
  result.degrees_of_freedom = variance > 0 ? variance * variance / over_freedom : freedom;
  return result;
}

}  // namespace

RowValues values_of(const Row& row,
                    const std::function<std::vector<double>(const Run&)>& quantities) {
  RowValues result;
  result.tainted = row.tainted;
  for (const Run& run : row.runs) {
    result.values.push_back(quantities(run));
    result.rounds.emplace_back(run.session, run.round);
  }
  return result;
}

RowValues log_costs(const Row& row, bool rates) {
  return values_of(row, [rates](const Run& run) {
    return Values{rates ? -std::log(*run.samples_per_second) : std::log(*run.fit_seconds)};
  });
}

Difference contrast(const std::vector<RowValues>& rows, const OfMeans& what) {
  const bool tainted =
      std::any_of(rows.begin(), rows.end(), [](const RowValues& row) { return row.tainted; });
  const std::vector<RowMeans> rounds = tainted ? std::vector<RowMeans>() : shared_rounds(rows);
  if (!rounds.empty()) {
    std::vector<double> each;
    for (const RowMeans& means : rounds) each.push_back(what(means));
    return paired_difference(each);
  }
  Difference result = independent(rows, what);
  if (tainted) result.degrees_of_freedom = 0;
  return result;
}

bool is_judged(const Difference& difference) {
  return difference.count >= kFewestRuns && difference.degrees_of_freedom > 0;
}

bool is_above(const Difference& difference, double limit) {
  return is_judged(difference) && difference.interval()->low > limit + kRounding;
}

bool is_below(const Difference& difference, double limit) {
  return is_judged(difference) && difference.interval()->high < limit - kRounding;
}

}  // namespace paceline

#include "analysis/study/contrast.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "engine/core/text.h"

namespace paceline {

namespace {

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

Values compute_mean(const std::vector<Values>& values) {
  return mean_without(values, values.size());
}

// Quantities of the runs of a round, each; empty where a run belongs to none.
std::map<Round, std::vector<Values>> by_round(const RowValues& row) {
  std::map<Round, std::vector<Values>> rounds;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (row.units[i].first.empty() || row.units[i].second < 1) return {};
    rounds[row.units[i]].push_back(row.values[i]);
  }
  return rounds;
}

Stopping stopping_of_any(const std::vector<RowValues>& rows) {
  const bool any = std::ranges::any_of(
      rows, [](const RowValues& row) { return row.stopping == Stopping::by_results; });
  return any ? Stopping::by_results : Stopping::fixed;
}

Difference independent(const std::vector<RowValues>& rows, const OfMeans& what) {
  RowMeans means;
  for (const RowValues& row : rows) means.push_back(compute_mean(row.values));
  Difference result{what(means), 0, 0, rows.front().values.size()};
  double variance = 0, over_freedom = 0, freedom = 0, errors = 0;
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
    errors += std::sqrt(part);
    over_freedom += part * part / others;
    freedom += others;
  }
  result.standard_error = std::sqrt(variance);
  result.degrees_of_freedom = variance > 0 ? variance * variance / over_freedom : freedom;
  if (stopping_of_any(rows) == Stopping::by_results) {
    result.standard_error = errors;
    result.sequences = rows.size();
  }
  return result;
}

}  // namespace

RowValues collect_values(const Row& row,
                         const std::function<std::vector<double>(const Run&)>& quantities) {
  RowValues result;
  result.tainted = row.tainted;
  result.stopping = find_stopping(row);
  std::map<std::string, std::vector<Values>> sessions;
  for (const Run& run : row.runs) {
    if (row.pooled) {
      sessions[run->session].push_back(quantities(run));
    } else {
      result.values.push_back(quantities(run));
      result.units.emplace_back(run->session, run->round);
    }
  }
  for (const auto& [session, values] : sessions) {
    result.values.push_back(compute_mean(values));
    result.units.emplace_back(session, 1);
  }
  return result;
}

RowValues log_costs(const Row& row, bool rates) {
  return collect_values(row, [rates](const Run& run) {
    return Values{rates ? -std::log(*run.samples_per_second) : std::log(*run->timing.fit_seconds)};
  });
}

RowValues log_values(const Row& row, const RunFact& fact) {
  return collect_values(row, [&](const Run& run) { return Values{std::log(*fact(run))}; });
}

Stopping find_stopping(const Row& row) {
  const bool any =
      std::ranges::any_of(row.runs, [](const Run& run) { return run->flags.sequential; });
  return any && !row.pooled ? Stopping::by_results : Stopping::fixed;
}

std::vector<RowMeans> paired_means(const std::vector<RowValues>& rows) {
  std::vector<std::map<Round, std::vector<Values>>> all;
  for (const RowValues& row : rows) all.push_back(by_round(row));
  const auto& first = all.front();
  std::vector<RowMeans> pairs;
  for (const auto& [round, values] : first) {
    RowMeans& means = pairs.emplace_back();
    for (const auto& rounds : all) {
      const auto it = rounds.find(round);
      if (it == rounds.end() || rounds.size() != first.size()) return {};
      // A round that has more runs would weigh more in the mean over runs.
      if (it->second.size() != rounds.begin()->second.size()) return {};
      means.push_back(compute_mean(it->second));
    }
  }
  const bool are_all = std::ranges::all_of(
      rows, [&](const RowValues& row) { return row.values.size() == pairs.size(); });
  const bool enough = pairs.size() >= kFewestRuns || (pairs.size() == 2 && are_all);
  return enough ? pairs : std::vector<RowMeans>();
}

Difference contrast(const std::vector<RowValues>& rows, const OfMeans& what) {
  const bool tainted = std::ranges::any_of(rows, [](const RowValues& row) { return row.tainted; });
  const std::vector<RowMeans> pairs = tainted ? std::vector<RowMeans>() : paired_means(rows);
  if (!pairs.empty()) {
    std::vector<double> each;
    for (const RowMeans& means : pairs) each.push_back(what(means));
    return paired_difference(each, stopping_of_any(rows));
  }
  Difference result = independent(rows, what);
  if (tainted) result.degrees_of_freedom = 0;
  return result;
}

bool is_judged(const Difference& difference) {
  return difference.count >= kFewestRuns && difference.interval().has_value();
}

bool is_above(const Difference& difference, double limit) {
  return is_judged(difference) && lies_above(*difference.interval(), limit);
}

bool is_below(const Difference& difference, double limit) {
  return is_judged(difference) && lies_below(*difference.interval(), limit);
}

void WeakEvidence::add(const Row& row) {
  few = few || units_in(row) < kFewestRuns;
  disturbed = disturbed || row.tainted;
  pooled = pooled || row.pooled;
}

void WeakEvidence::add(const WeakEvidence& other) {
  few = few || other.few;
  disturbed = disturbed || other.disturbed;
  pooled = pooled || other.pooled;
  unbounded = unbounded || other.unbounded;
}

std::string WeakEvidence::text() const {
  std::vector<std::string> reasons;
  if (few)
    reasons.push_back(fmt::format("fewer than {} {}", kFewestRuns, pooled ? "sessions" : "runs"));
  if (unbounded) reasons.emplace_back("too few runs for an anytime-valid interval");
  if (disturbed) reasons.emplace_back("only disturbed runs");
  return join(reasons, " or ");
}

WeakEvidence find_weak_evidence(const Row& base, const Row& row) {
  WeakEvidence doubt;
  doubt.add(base);
  doubt.add(row);
  return doubt;
}

bool Judged::is_above(double limit) const {
  const auto* interval = std::get_if<Interval>(&of_it_);
  return interval != nullptr && lies_above(*interval, limit);
}

bool Judged::is_below(double limit) const {
  const auto* interval = std::get_if<Interval>(&of_it_);
  return interval != nullptr && lies_below(*interval, limit);
}

Judged judged(const Estimate& estimate, const WeakEvidence& doubt) {
  if (doubt) return {estimate.value, doubt};
  if (estimate.interval && estimate.count >= kFewestRuns) {
    return {estimate.value, *estimate.interval};
  }
  return {estimate.value, WeakEvidence{.few = estimate.count < kFewestRuns,
                                       .unbounded = estimate.count >= kFewestRuns}};
}

Judged judged(const Difference& difference, const WeakEvidence& doubt) {
  return judged(Estimate{difference.mean, difference.interval(), difference.count}, doubt);
}

}  // namespace paceline

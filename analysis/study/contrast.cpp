#include "analysis/study/contrast.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "engine/core/text.h"

namespace paceline {

namespace {

using Values = std::vector<double>;
using Round = std::pair<std::string, int>;

Values compute_mean(const std::vector<Values>& values) {
  Values mean(values.front().size(), 0.0);
  for (const Values& each : values) {
    for (std::size_t k = 0; k < mean.size(); ++k) {
      mean[k] += each[k] / static_cast<double>(values.size());
    }
  }
  return mean;
}

// A row's runs by session. Rows that may be compared have the same sessions.
std::vector<std::vector<Values>> by_session(const RowValues& row) {
  std::map<std::string, std::vector<Values>> sessions;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    sessions[row.has_sessions ? row.units[i].first : ""].push_back(row.values[i]);
  }
  return mapped(sessions, [](auto& session) { return std::move(session.second); });
}

// The rows' means, each session with the same weight in all rows: what a session shares cancels.
class SessionMeans {
 public:
  explicit SessionMeans(const std::vector<RowValues>& rows) {
    for (const RowValues& row : rows) runs_.push_back(by_session(row));
    double all = 0;
    for (std::size_t s = 0; s < runs_.front().size(); ++s) {
      double inverse = 0;
      for (const auto& row : runs_) inverse += 1 / static_cast<double>(row[s].size());
      all += weights_.emplace_back(1 / inverse);
    }
    for (double& weight : weights_) weight /= all;
    for (const auto& row : runs_) {
      Values& mean = means.emplace_back(row.front().front().size(), 0.0);
      for (std::size_t s = 0; s < row.size(); ++s) {
        const Values here = compute_mean(row[s]);
        for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += weights_[s] * here[k];
      }
    }
  }

  // What the noise of a row's runs adds to the variance of `what`, by the jackknife within
  // sessions; with its degrees of freedom, 0 if no session has two runs.
  std::pair<double, double> variance(std::size_t row, const OfMeans& what) const {
    double squares = 0, freedom = 0, spread = 0;
    for (std::size_t s = 0; s < weights_.size(); ++s) {
      const std::vector<Values>& runs = runs_[row][s];
      const auto count = static_cast<double>(runs.size());
      spread += weights_[s] * weights_[s] / count;
      if (runs.size() < 2) continue;
      const Values mean = compute_mean(runs);
      RowMeans without = means;
      std::vector<double> found;
      for (const Values& run : runs) {
        for (std::size_t k = 0; k < mean.size(); ++k) {
          without[row][k] = means[row][k] - weights_[s] * (run[k] - mean[k]) / (count - 1);
        }
        found.push_back(what(without));
      }
      const double middle = average(found), scale = (count - 1) / weights_[s];
      for (const double each : found) squares += (each - middle) * (each - middle) * scale * scale;
      freedom += count - 1;
    }
    return {freedom > 0 ? squares / freedom * spread : 0, freedom};
  }

  RowMeans means;

 private:
  std::vector<std::vector<std::vector<Values>>> runs_;  // of each row, by session
  std::vector<double> weights_;                         // of sessions
};

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
  const SessionMeans of(rows);
  Difference result{what(of.means), 0, 0, rows.front().values.size()};
  double variance = 0, over_freedom = 0, all_freedom = 0, errors = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    result.count = std::min(result.count, rows[i].values.size());
    const auto [part, freedom] = of.variance(i, what);
    if (freedom == 0) return {result.mean, 0, 0, 1};
    variance += part;
    errors += std::sqrt(part);
    over_freedom += part * part / freedom;
    all_freedom += freedom;
  }
  result.standard_error = std::sqrt(variance);
  result.degrees_of_freedom = variance > 0 ? variance * variance / over_freedom : all_freedom;
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
  result.needed = fewest_units(row);
  result.has_sessions = knows_sessions(row);
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
    return Values{rates ? -std::log(*run.samples_per_second) : std::log(*run.fit_seconds())};
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

std::vector<RowValues> within_sessions(std::vector<RowValues> rows) {
  std::map<std::string, std::set<const RowValues*>> sessions;
  for (const RowValues& row : rows) {
    for (const auto& [session, round] : row.units) sessions[session].insert(&row);
  }
  std::erase_if(sessions, [&](const auto& each) { return each.second.size() < rows.size(); });
  const bool known =
      std::ranges::all_of(rows, [](const RowValues& row) { return row.has_sessions; });
  for (RowValues& row : rows) {
    row.has_sessions = known && !sessions.empty();
    row.tainted = row.tainted || (known && sessions.empty());
    for (std::size_t i = row.has_sessions ? row.values.size() : 0; i-- > 0;) {
      if (sessions.contains(row.units[i].first)) continue;
      row.values.erase(row.values.begin() + static_cast<std::ptrdiff_t>(i));
      row.units.erase(row.units.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return rows;
}

RowMeans comparable_means(const std::vector<RowValues>& rows) {
  return SessionMeans(within_sessions(rows)).means;
}

std::vector<RowMeans> paired_means(const std::vector<RowValues>& of_rows) {
  const std::vector<RowValues> rows = within_sessions(of_rows);
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

Difference contrast(const std::vector<RowValues>& of_rows, const OfMeans& what) {
  const std::vector<RowValues> rows = within_sessions(of_rows);
  const bool tainted = std::ranges::any_of(rows, [](const RowValues& row) { return row.tainted; });
  const std::vector<RowMeans> pairs = tainted ? std::vector<RowMeans>() : paired_means(rows);
  Difference result;
  if (!pairs.empty()) {
    result = paired_difference(mapped(pairs, [&](const RowMeans& means) { return what(means); }),
                               stopping_of_any(rows));
  } else {
    result = independent(rows, what);
  }
  if (tainted) result.degrees_of_freedom = 0;
  result.needed = 0;
  for (const RowValues& row : rows) result.needed = std::max(result.needed, row.needed);
  return result;
}

Ratio ratio_of_means(const RowValues& above, const RowValues& below) {
  const std::vector<RowValues> rows = {above, below};
  const Estimate ratio =
      as_factor(contrast(rows, [](const RowMeans& means) { return means[0][0] - means[1][0]; }));
  if (!ratio.interval) return {ratio, RatioKind::single};
  return {ratio, paired_means(rows).empty() ? RatioKind::welch : RatioKind::paired};
}

bool is_judged(const Difference& difference) {
  return difference.count >= difference.needed && difference.interval().has_value();
}

bool is_above(const Difference& difference, double limit) {
  return is_judged(difference) && lies_above(*difference.interval(), limit);
}

bool is_below(const Difference& difference, double limit) {
  return is_judged(difference) && lies_below(*difference.interval(), limit);
}

void WeakEvidence::add(const Row& row) {
  few = few || units_in(row) < fewest_units(row);
  disturbed = disturbed || row.tainted;
  pooled = pooled || row.pooled;
}

void WeakEvidence::add(const WeakEvidence& other) {
  few = few || other.few;
  disturbed = disturbed || other.disturbed;
  pooled = pooled || other.pooled;
  apart = apart || other.apart;
  unbounded = unbounded || other.unbounded;
}

std::string WeakEvidence::text() const {
  std::vector<std::string> reasons;
  if (few) {
    reasons.push_back((pooled ? fmt::format("fewer than {} sessions or ", kFewestPooledSessions)
                              : "fewer than ") +
                      fmt::format("{} runs", kFewestRuns));
  }
  if (unbounded) reasons.emplace_back("too few runs for an anytime-valid interval");
  if (apart) reasons.emplace_back("too few runs in a common session");
  if (disturbed) reasons.emplace_back("only disturbed runs");
  return join(reasons, " or ");
}

WeakEvidence find_weak_evidence(const Row& base, const Row& row) {
  WeakEvidence doubt;
  doubt.add(base);
  doubt.add(row);
  doubt.apart =
      !doubt.few && units_in_common(base, row) < std::max(fewest_units(base), fewest_units(row));
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
  const bool enough = estimate.count >= estimate.needed;
  if (estimate.interval && enough) return {estimate.value, *estimate.interval};
  return {estimate.value, WeakEvidence{.few = !enough, .unbounded = enough}};
}

Judged judged(const Difference& difference, const WeakEvidence& doubt) {
  const auto interval = difference.interval();
  const Judged result =
      judged(Estimate{difference.mean, interval, difference.count, difference.needed}, doubt);
  if (doubt || interval || difference.count < difference.needed || difference.sequences > 0) {
    return result;
  }
  return {difference.mean, WeakEvidence{.apart = true}};
}

}  // namespace paceline

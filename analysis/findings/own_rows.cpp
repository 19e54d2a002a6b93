// Rows that lost runs, or that ran where or when no other row did.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/study/labels.h"
#include "analysis/study/rounds.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostListed = 4;

using Places = std::set<std::string>;

// Rows that share places, directly or by way of others.
class PlaceGroups {
 public:
  explicit PlaceGroups(std::size_t rows) : group_(rows) {
    std::iota(group_.begin(), group_.end(), std::size_t{0});
  }

  void add(std::size_t row, const Places& places) {
    for (const std::string& place : places) {
      const auto [first, is_new] = first_at_.emplace(place, row);
      if (!is_new) group_[root(row)] = root(first->second);
    }
  }

  std::size_t root(std::size_t row) {
    while (group_[row] != row) row = group_[row] = group_[group_[row]];
    return row;
  }

 private:
  std::vector<std::size_t> group_;
  std::map<std::string, std::size_t> first_at_;
};

struct PlaceKind {
  FindingKind finding;
  const char *on, *own;  // in sentences
};

struct PlacedRow {
  std::string name;
  int gpus = 1;
  Places nodes, sessions;
};

// Says which rows share no place with the most rows, or of equally many with the smaller ones.
// Rows without known places are left out.
std::vector<Finding> own_places(const std::vector<PlacedRow>& placed, Places PlacedRow::*which,
                                const PlaceKind& kind) {
  std::vector<Places> places;
  for (const PlacedRow& row : placed) places.push_back(row.*which);
  PlaceGroups groups(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) groups.add(i, places[i]);
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i].empty()) members[groups.root(i)].push_back(i);
  }
  if (members.size() < 2) return {};
  const auto least_gpus = [&](const std::vector<std::size_t>& rows) {
    int least = placed[rows.front()].gpus;
    for (const std::size_t row : rows) least = std::min(least, placed[row].gpus);
    return least;
  };
  const auto most = std::ranges::max_element(members, [&](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() < b.second.size()
                                              : least_gpus(a.second) > least_gpus(b.second);
  });
  std::vector<Finding> found;
  for (const auto& [root, rows] : members) {
    if (root == most->first) continue;
    std::vector<std::string> of_rows;
    Places where;
    for (const std::size_t row : rows) {
      of_rows.push_back(placed[row].name);
      where.insert(places[row].begin(), places[row].end());
    }
    found.push_back(
        {kind.finding, fmt::format("{} ran only {} {}, no other row did: what is due to it cannot "
                                   "be distinguished from what is due to the row{}",
                                   join_first(kMostListed, of_rows), kind.on,
                                   join_first(kMostListed, {where.begin(), where.end()}),
                                   rows.size() == 1 ? "" : "s")});
  }
  if (found.size() <= kMostListed) return found;
  return {
      {kind.finding,
       fmt::format("rows ran {}: what these differ in cannot be distinguished from what rows do",
                   kind.own)}};
}

constexpr std::size_t kFewestRows = 3, kMostNamed = 3;
constexpr double kDeviation = 0.1;

std::string samples_text(double samples) {
  return samples >= 1e6 ? fmt::format("{:.3g} million", samples / 1e6)
                        : fmt::format("{:.0f}", samples);
}

constexpr double kLargestRateFactor = 1.5;

// What the program states as its rate over what follows from its samples and its time.
std::optional<double> rate_factor(const Run& run) {
  const Throughput& stated = run->throughput;
  if (!run->provenance.program && !run.made_elsewhere()) return std::nullopt;
  if (!stated.samples_per_second || !stated.samples || !run->timing.fit_seconds)
    return std::nullopt;
  const double factor = *stated.samples_per_second * *run->timing.fit_seconds / *stated.samples;
  const bool agrees = factor < kLargestRateFactor && factor > 1 / kLargestRateFactor;
  return agrees ? std::nullopt : std::optional(factor);
}

// ", as many as its replicas"; empty: the factor is none of the run's numbers.
std::string explain_factor(const Run& run, double factor) {
  const double times = std::max(factor, 1 / factor);
  const auto is_it = [times](double number) { return std::abs(times / number - 1) <= kDeviation; };
  if (run->layout.gpus > 1 && is_it(run->layout.gpus)) return ", as many as its replicas";
  const char* steps = "gradient_accumulation_steps";
  const auto accumulated = run->parameters.real(steps);
  return accumulated && *accumulated > 1 && is_it(*accumulated)
             ? ", as many as its " + option_name(steps).substr(2)
             : "";
}

constexpr double kMuchNarrower = 0.5;
constexpr std::size_t kMostTrimmed = 4;

bool is_spread_out(const RowValues& costs, double spread) {
  const auto [least, most] = std::ranges::minmax(
      costs.values, {}, [](const std::vector<double>& unit) { return unit.front(); });
  return most.front() - least.front() > std::log(spread);
}

double log_width(const Interval& interval) {
  return std::log(interval.high / interval.low);
}

std::optional<Estimate> trimmed_speed_up(const Row& base, const RowFacts& facts, bool rates,
                                         double spread) {
  const RowValues before = log_costs(base, rates), after = log_costs(*facts.row, rates);
  if (!is_spread_out(before, spread) && !is_spread_out(after, spread)) return std::nullopt;
  const Estimate trimmed = as_factor(trimmed_contrast(after, before));
  const auto& known = facts.speed_up->ratio.estimate.interval;
  const bool is_narrower = known && trimmed.interval &&
                           log_width(*trimmed.interval) <= kMuchNarrower * log_width(*known);
  return is_narrower ? std::optional(trimmed) : std::nullopt;
}

}  // namespace

std::vector<Finding> survivor_findings(const Study& study, const std::vector<std::string>& names) {
  std::vector<Finding> found;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const Row& row = study.rows[i];
    if (row.lost == 0) continue;
    found.push_back(
        {FindingKind::survivors,
         fmt::format("{}: {}{}; its numbers are of these alone", names[i], survivors_text(row),
                     row.why_lost.empty() ? "" : " (" + row.why_lost + ")")});
  }
  if (found.size() <= kMostListed) return found;
  return {
      {FindingKind::survivors,
       fmt::format("{} rows lost runs (column label): their numbers are of those that completed",
                   found.size())}};
}

std::vector<Finding> own_rows_findings(const Study& study, const std::vector<std::string>& names) {
  std::map<std::string, std::vector<PlacedRow>> systems;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const Row& row = study.rows[i];
    if (row.first()->kind != "measured") continue;
    PlacedRow& placed = systems[row.first().system].emplace_back();
    placed.name = names[i];
    placed.gpus = row.first()->layout.gpus;
    for (const Run& run : row.runs) {
      const std::vector<std::string> hosts = run->host_names();
      placed.nodes.insert(hosts.begin(), hosts.end());
      // For a single run, its session says no more than the run itself.
      if (row.runs.size() > 1 && !run->session.empty()) placed.sessions.insert(run->session);
    }
  }
  std::vector<Finding> found;
  for (const auto& [system, rows] : systems) {
    for (const auto& own :
         {own_places(rows, &PlacedRow::nodes,
                     {FindingKind::own_nodes, "on", "on nodes of their own"}),
          own_places(rows, &PlacedRow::sessions,
                     {FindingKind::own_session, "in session", "in sessions of their own"})}) {
      found.insert(found.end(), own.begin(), own.end());
    }
  }
  return found;
}

std::string implied_samples_line(const Study& study) {
  std::vector<std::pair<const Row*, double>> implied;
  std::vector<const Row*> rows;
  for (const Row& row : study.rows) {
    rows.push_back(&row);
    const Run& run = row.first();
    if (!run.made_elsewhere() || !run->timing.fit_seconds || !run->throughput.samples_per_second)
      continue;
    implied.emplace_back(&row, *run->timing.fit_seconds * *run.samples_per_second);
  }
  if (implied.size() < kFewestRows) return "";
  std::vector<double> sorted;
  for (const auto& [row, samples] : implied) sorted.push_back(samples);
  std::ranges::sort(sorted);
  const double median = sorted[sorted.size() / 2];
  std::vector<std::string> named;
  std::vector<double> others;
  const std::vector<std::string> names = point_names(study, rows);
  std::size_t deviating = 0;
  for (const auto& [row, samples] : implied) {
    if (std::abs(samples / median - 1) <= kDeviation) {
      others.push_back(samples);
    } else if (++deviating <= kMostNamed) {
      named.push_back(fmt::format("of {} is {} samples",
                                  names[static_cast<std::size_t>(row - study.rows.data())],
                                  samples_text(samples)));
    }
  }
  if (deviating == 0) return "";
  const auto [low, high] = std::ranges::minmax_element(others);
  return fmt::format("time x rate {}{}, of the other {} {} to {}: these rows do not agree",
                     join(named, ", "), deviating > kMostNamed ? ", ..." : "",
                     counted(others.size(), "row"), samples_text(*low), samples_text(*high));
}

std::string rate_off_time_line(const Study& study) {
  std::vector<const Row*> rows;
  for (const Row& row : study.rows) rows.push_back(&row);
  std::vector<std::string> named;
  std::size_t count = 0;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const Run& run = study.rows[i].first();
    const auto factor = rate_factor(run);
    if (!factor || ++count > kMostNamed) continue;
    named.push_back(fmt::format("of {} is {:.2f} times its samples / fit seconds{}",
                                point_names(study, rows)[i], *factor,
                                explain_factor(run, *factor)));
  }
  if (count == 0) return "";
  return fmt::format(
      "the rate {}{}: either much of the seconds is not training, or one of the three counts "
      "something else, such as one replica's samples, accumulated batches, or another unit",
      join(named, ", "), count > kMostNamed ? ", ..." : "");
}

std::string lower_quality_line(const Study& study, const std::vector<RowFacts>& facts) {
  constexpr std::size_t kMostNamed = 3;
  const bool any = std::ranges::any_of(
      facts, [](const RowFacts& row) { return row.speed_up && row.speed_up->lost; });
  if (!any) return "";
  std::vector<const Row*> rows;
  for (const Row& row : study.rows) rows.push_back(&row);
  const std::vector<std::string> names = point_names(study, rows);
  std::vector<std::string> named;
  std::set<std::string> labels;
  std::size_t count = 0;
  for (const RowFacts& row : facts) {
    if (!row.speed_up || !row.speed_up->lost) continue;
    const QualityLoss& lost = *row.speed_up->lost;
    labels.insert(lost.label());
    if (++count > kMostNamed) continue;
    named.push_back(fmt::format(
        "{} ({})", names[static_cast<std::size_t>(row.row - study.rows.data())], lost.text()));
  }
  return fmt::format("{} {} {} than {} base: {}{}; speed-ups in brackets are of worse networks",
                     counted(count, "row"), count == 1 ? "has" : "have",
                     join({labels.begin(), labels.end()}, " or "), count == 1 ? "its" : "their",
                     join(named, ", "), count > kMostNamed ? ", ..." : "");
}

std::string trimmed_ratios_line(const Study& study, const Comparison& comparison,
                                const std::vector<RowFacts>& facts, double spread) {
  std::vector<const Row*> rows;
  for (const RowFacts& each : facts) rows.push_back(each.row);
  const std::vector<std::string> names = point_names(study, rows);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].speed_up || facts[i].speed_up->base == i) continue;
    const Row& base = study.rows[facts[i].speed_up->base];
    const auto ratio = trimmed_speed_up(base, facts[i], comparison.rates, spread);
    if (!ratio) continue;
    texts.push_back(fmt::format("{}: speed-up {:.2f} [{:.2f}, {:.2f}]", names[i], ratio->value,
                                ratio->interval->low, ratio->interval->high));
  }
  if (texts.empty()) return "";
  return "without the fastest and the slowest runs of each row (trimmed means): " +
         join_first(kMostTrimmed, texts, "; ");
}

}  // namespace paceline

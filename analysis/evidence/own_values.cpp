// Rows and sides that share no value of a covariate with the others, so that nothing distinguishes
// it from them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "analysis/evidence/covariates.h"
#include "analysis/evidence/evidence.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostNamedRows = 4;
constexpr double kLeastNumber = 0.05;  // rows whose numbers differ by less share them

using ValueSet = std::set<std::string>;
using RowIndices = std::vector<std::size_t>;  // indices of rows

bool has_own(const Run& run) {
  return run->kind == "measured" || run->kind == "imported";
}

int replicas(const CovariateRow& row) {
  return row.runs->front()->layout.gpus;
}

int least_replicas(const std::vector<CovariateRow>& rows, const RowIndices& members) {
  return std::ranges::min(mapped(members, [&](std::size_t i) { return replicas(rows[i]); }));
}

// The group of the most rows, or of equally many with the smaller ones.
std::size_t main_group(const std::vector<CovariateRow>& rows,
                       const std::vector<RowIndices>& groups) {
  const auto most = std::ranges::max_element(groups, [&](const RowIndices& a, const RowIndices& b) {
    return a.size() != b.size() ? a.size() < b.size()
                                : least_replicas(rows, a) > least_replicas(rows, b);
  });
  return static_cast<std::size_t>(most - groups.begin());
}

std::string row_names_text(const std::vector<CovariateRow>& rows, const RowIndices& members) {
  return join_first(kMostNamedRows, mapped(members, [&](std::size_t i) { return rows[i].name; }));
}

// Rows that share values, directly or by way of others. Rows without known values are left out.
std::vector<RowIndices> sharing_groups(const std::vector<ValueSet>& values) {
  std::vector<std::size_t> group(values.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  const auto root = [&](std::size_t row) {
    while (group[row] != row) row = group[row] = group[group[row]];
    return row;
  };
  std::map<std::string, std::size_t> first_at;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const std::string& value : values[i]) {
      const auto [first, is_new] = first_at.emplace(value, i);
      if (!is_new) group[root(i)] = root(first->second);
    }
  }
  std::map<std::size_t, RowIndices> members;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].empty()) members[root(i)].push_back(i);
  }
  return mapped(members, [](auto& group) { return std::move(group.second); });
}

constexpr char kCannot[] = "its effect cannot be distinguished from that of the row";

void add_own(const Covariate& covariate, const std::vector<CovariateRow>& rows,
             CovariateFindings& found) {
  std::vector<ValueSet> values;
  for (const CovariateRow& row : rows) {
    ValueSet& own = values.emplace_back();
    // For a single run, its session says no more than the run itself.
    if (!covariate.has_effect && row.runs->size() < 2) continue;
    for (const Run& run : *row.runs) {
      if (run->kind == "measured") own.merge(covariate_values(covariate, run));
    }
  }
  const std::vector<RowIndices> groups = sharing_groups(values);
  if (groups.size() < 2) return;
  if (covariate.has_effect) found.causes.are_open = false;
  if (groups.size() - 1 > kMostNamedRows) {
    found.sentences.push_back(fmt::format(
        "rows ran {} {} of their own: their effect cannot be distinguished from that of the rows",
        covariate.where, covariate.plural ? covariate.plural : covariate.name));
    return;
  }
  const std::size_t most = main_group(rows, groups);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (k == most) continue;
    ValueSet where;
    for (const std::size_t i : groups[k]) where.insert(values[i].begin(), values[i].end());
    found.sentences.push_back(fmt::format("{} ran only {} {}, no other row did: {}{}",
                                          row_names_text(rows, groups[k]), covariate.where,
                                          join_first(kMostNamedRows, {where.begin(), where.end()}),
                                          kCannot, groups[k].size() == 1 ? "" : "s"));
  }
}

struct NumbersOfRow {
  std::size_t row = 0;
  std::vector<double> logs;
  double mean = 0;
};

// Whether all rows below index `at` have less than all others, by kLeastNumber and beyond noise.
bool are_apart(const std::vector<NumbersOfRow>& sorted, std::size_t at) {
  std::vector<double> low, high;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    auto& side = i < at ? low : high;
    side.insert(side.end(), sorted[i].logs.begin(), sorted[i].logs.end());
  }
  if (std::min(low.size(), high.size()) < kFewestRuns) return false;
  if (std::ranges::max(low) >= std::ranges::min(high)) return false;
  const Difference difference = independent_difference(high, low);
  return difference.mean > kLeastNumber &&
         difference.p_value() < kCovariateLevel / static_cast<double>(sorted.size());
}

double geometric_mean_of(const std::vector<NumbersOfRow>& sorted, std::size_t begin,
                         std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += sorted[i].mean;
  return std::exp(sum / static_cast<double>(end - begin));
}

// "the clock was 2400 MHz in 1 replica, 2 replicas, and 3000 MHz in the other rows".
void add_own_numbers(const Covariate& covariate, const std::vector<CovariateRow>& rows,
                     CovariateFindings& found) {
  std::vector<NumbersOfRow> sorted;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    NumbersOfRow numbers{i, {}, 0};
    for (const Run& run : *rows[i].runs) {
      const auto number = covariate.number(run);
      if (has_own(run) && number && *number > 0) numbers.logs.push_back(std::log(*number));
    }
    if (numbers.logs.empty()) continue;
    numbers.mean = average(numbers.logs);
    sorted.push_back(std::move(numbers));
  }
  std::ranges::stable_sort(sorted, {}, &NumbersOfRow::mean);
  std::size_t best = 0;
  double widest = 0;
  for (std::size_t at = 1; at < sorted.size(); ++at) {
    const double gap = sorted[at].mean - sorted[at - 1].mean;
    if (gap <= widest || !are_apart(sorted, at)) continue;
    widest = gap;
    best = at;
  }
  if (best == 0) return;
  found.causes.are_open = false;
  RowIndices low;
  for (std::size_t i = 0; i < best; ++i) low.push_back(sorted[i].row);
  std::ranges::sort(low);
  found.sentences.push_back(
      fmt::format("the {} was {:.0f} {} in {}, and {:.0f} {} in the other rows: {}", covariate.name,
                  geometric_mean_of(sorted, 0, best), covariate.unit, row_names_text(rows, low),
                  geometric_mean_of(sorted, best, sorted.size()), covariate.unit, kCannot));
}

// Of one session: when the first and the last run of each row began.
struct RowSpan {
  std::size_t row = 0;
  std::string first, last;
  std::size_t runs = 0;
};

std::map<std::string, std::vector<RowSpan>> spans_by_session(
    const std::vector<CovariateRow>& rows) {
  std::map<std::string, std::vector<RowSpan>> sessions;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const Run& run : *rows[i].runs) {
      const std::string& start = run->provenance.started_at;
      if (!has_own(run) || start.empty()) continue;
      std::vector<RowSpan>& spans = sessions[run->session];
      if (spans.empty() || spans.back().row != i) spans.push_back({i, start, start, 0});
      RowSpan& span = spans.back();
      span.first = std::min(span.first, start);
      span.last = std::max(span.last, start);
      ++span.runs;
    }
  }
  return sessions;
}

// Rows whose spans overlap, directly or by way of others, in the order of time.
std::vector<RowIndices> overlapping_groups(std::vector<RowSpan> spans) {
  std::ranges::stable_sort(spans, {}, &RowSpan::first);
  std::vector<RowIndices> groups;
  std::string last;
  for (const RowSpan& span : spans) {
    if (groups.empty() || span.first > last) groups.emplace_back();
    groups.back().push_back(span.row);
    last = std::max(last, span.last);
  }
  return groups;
}

}  // namespace

void add_own_values(const std::vector<CovariateRow>& rows, CovariateFindings& found) {
  std::map<std::string, std::vector<CovariateRow>> systems;
  std::set<std::string> programs;
  for (const CovariateRow& row : rows) {
    const Run& first = row.runs->front();
    systems[first.system].push_back(row);
    programs.insert(name_of_program(first->parameters.text("program").value_or("")));
  }
  for (const auto& [system, members] : systems) {
    for (const Covariate& covariate : covariates()) {
      const bool is_programs = covariate.is_weighed && programs.size() > 1;
      if (covariate.is_layout || is_programs) continue;
      (covariate.number ? add_own_numbers : add_own)(covariate, members, found);
    }
  }
}

void add_own_times(const std::vector<CovariateRow>& rows, CovariateFindings& found) {
  const auto trend = trend_of_cycles(rows);
  if (trend && trend->p_value() < kCovariateLevel) {
    found.causes = {false, std::abs(std::expm1(trend->mean))};
    found.sentences.push_back(fmt::format(
        "set \"order\": \"interleaved\", as rows ran in the same order each time and times {} by "
        "{:.1f} % from one to the next: smaller differences may be the time of day",
        trend->mean > 0 ? "rise" : "fall", 100 * std::abs(std::expm1(trend->mean))));
    return;
  }
  std::set<std::vector<RowIndices>> orders;
  for (const auto& [session, spans] : spans_by_session(rows)) {
    if (spans.size() < 2) continue;
    const bool has_times =
        std::ranges::all_of(spans, [](const RowSpan& span) { return span.runs >= 2; });
    const std::vector<RowIndices> groups = overlapping_groups(spans);
    if (!has_times || groups.size() < 2) return;
    orders.insert(groups);
  }
  if (orders.size() != 1) return;  // another order in another session, or no order
  const std::vector<RowIndices>& groups = *orders.begin();
  const std::set<int> sizes = distinct(rows, replicas);
  if (sizes.size() > 1) found.causes = {false, std::numeric_limits<double>::infinity()};
  if (groups.size() == rows.size()) {
    const char* what = sizes.size() == rows.size() ? "size" : "row";
    found.sentences.push_back(fmt::format(
        "{0}s ran one after the other: {0} and time of day cannot be distinguished; \"order\": "
        "\"interleaved\" runs them in turns",
        what));
    return;
  }
  if (groups.size() - 1 > kMostNamedRows) {
    found.sentences.push_back(fmt::format(
        "rows ran in {} groups, one after the other: group and time of day cannot be distinguished",
        groups.size()));
    return;
  }
  const std::size_t most = main_group(rows, groups);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    if (k == most) continue;
    found.sentences.push_back(
        fmt::format("{} ran {} the other rows: row and time of day cannot be distinguished",
                    row_names_text(rows, groups[k]), k < most ? "before" : "after"));
  }
}

std::optional<OwnOfSide> find_own_of_side(const std::vector<Run>& before,
                                          const std::vector<Run>& now,
                                          const std::string& before_name,
                                          const std::string& now_name) {
  for (const Covariate& covariate : covariates()) {
    const bool is_asked = covariate.value && covariate.has_effect && !covariate.unlike &&
                          !covariate.is_weighed && !covariate.is_layout;
    if (!is_asked) continue;
    ValueSet was, is, shared;
    for (const Run& run : before) was.merge(covariate_values(covariate, run));
    for (const Run& run : now) is.merge(covariate_values(covariate, run));
    std::ranges::set_intersection(was, is, std::inserter(shared, shared.end()));
    if (was.empty() || is.empty() || !shared.empty()) continue;
    return OwnOfSide{
        fmt::format("the {} side ran only {} {}, no run of the {} did: build and {} cannot be "
                    "distinguished",
                    now_name, covariate.where, join_first(kMostNamedRows, {is.begin(), is.end()}),
                    before_name, covariate.name),
        was.size()};
  }
  return std::nullopt;
}

}  // namespace paceline

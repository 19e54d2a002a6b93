#include "analysis/study/scaling_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/study/contrast.h"
#include "analysis/study/cost.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

// The parts of the names of series; those that all share are dropped.
using Parts = std::vector<std::string>;

constexpr std::size_t kBackend = 2, kNodes = 3;

Parts split_parts(const Study& study, const Comparison& comparison, const Run& run, bool by_cpus) {
  Parts parts = {run->kind == "measured" ? "" : run->kind, run.system, "", ""};
  if (comparison.base == Base::best) return parts;
  parts[kBackend] = run.backend;
  for (const std::string& axis : study.axes) {
    parts.push_back(fmt::format("{} {}", axis, run->parameters.text(axis).value_or("-")));
  }
  if (by_cpus && run.replicas_are_cores() && run.cpus_per_replica()) {
    parts.push_back(counted(*run.cpus_per_replica(), "CPU") + " per replica");
  } else if (by_cpus && run->layout.cpus_per_task) {
    parts.push_back(fmt::format("cpus-per-task {:2}", *run->layout.cpus_per_task));
  }
  return parts;
}

// The parts of rows. Where rows of one size differ in their nodes alone, each number of nodes is a
// series: no series compares one of them with larger sizes on other nodes, unless the fastest rows
// are compared, however they were made.
class SeriesParts {
 public:
  SeriesParts(const Study& study, const Comparison& comparison, bool by_cpus)
      : study_(study), comparison_(comparison), by_cpus_(by_cpus) {
    for (const Row& row : study.rows) {
      const bool is_apart = row.distinct_nodes && comparison.base != Base::best;
      if (is_apart) of_several_nodes_.insert(split(row));
    }
  }

  Parts of(const Row& row) const {
    Parts parts = split(row);
    const auto nodes = row.first()->layout.nodes;
    if (nodes && of_several_nodes_.contains(parts)) parts[kNodes] = counted(*nodes, "node");
    return parts;
  }

 private:
  Parts split(const Row& row) const {
    return split_parts(study_, comparison_, row.first(), by_cpus_);
  }

  const Study& study_;
  const Comparison& comparison_;
  bool by_cpus_;
  std::set<Parts> of_several_nodes_;
};

template <typename Series>
void name_series(std::vector<std::pair<Parts, Series>>& all_series) {
  std::map<std::size_t, std::set<std::string>> values;
  for (const auto& [parts, series] : all_series) {
    for (std::size_t i = 0; i < parts.size(); ++i) values[i].insert(parts[i]);
  }
  for (auto& [parts, series] : all_series) {
    Parts shown;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool is_shared = values[i].size() < 2 && i != kBackend && i != kNodes;
      if (parts[i].empty() || is_shared) continue;
      shown.push_back(parts[i]);
      const std::size_t padding = parts[i].find("  ");  // by which 2 stands before 16
      if (padding != std::string::npos) shown.back().erase(padding, 1);
    }
    series.name = join(shown, ", ");
  }
}

// A series whose base is a run of another backend (one replica needs none) begins there, too.
void add_borrowed_base(std::map<int, SizeGroup>& groups, const Study& study,
                       const std::vector<RowFacts>& facts) {
  if (groups.begin()->first == 1) return;
  SizeGroup first;
  for (const RowFacts* row : groups.begin()->second.rows) {
    const RowFacts* base = &facts[row->speed_up->base];
    const bool known = std::find(first.rows.begin(), first.rows.end(), base) != first.rows.end();
    if (study.rows[row->speed_up->base].first()->layout.gpus == 1 && !known)
      first.rows.push_back(base);
  }
  if (!first.rows.empty()) groups.emplace(1, std::move(first));
}

std::optional<Estimate> share(const Row& row, const RunFact& fact) {
  const std::vector<double> all = known_values(row.runs, fact);
  if (all.empty()) return std::nullopt;
  Estimate result = mean_share(all, find_stopping(row));
  if (row.tainted || row.pooled) result.interval.reset();
  return result;
}

std::optional<Estimate> divided(const std::optional<Estimate>& estimate, double by) {
  if (!estimate) return std::nullopt;
  return transformed(*estimate, [by](double value) { return value / by; });
}

}  // namespace

std::optional<double> share_of_step(const Row& row, double PhaseSeconds::*phase) {
  double seconds = 0, steps = 0;
  for (const Run& run : row.runs) {
    seconds += (*run.phase_sum).*phase;
    steps += run.phase_sum->step;
  }
  return steps > 0 ? std::optional(seconds / steps) : std::nullopt;
}

bool SizeGroup::is_base() const {
  return std::ranges::all_of(rows, [](const RowFacts* row) { return row->speed_up->ideal <= 1; });
}

std::vector<ScalingSeries> make_scaling_series(const Study& study, const Comparison& comparison,
                                               const std::vector<RowFacts>& facts, bool by_cpus,
                                               Quality quality) {
  if (!comparison.base.compares_sizes()) return {};
  const SeriesParts series_parts(study, comparison, by_cpus);
  std::map<Parts, std::map<int, SizeGroup>> found;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].speed_up) continue;
    const bool is_base = facts[i].speed_up->base == i;
    if (quality == Quality::held && facts[i].is_barred() && !is_base) continue;
    if (comparison.base == Base::best && !comparison.best_of_size[i]) continue;
    const int gpus = facts[i].run()->layout.gpus;
    SizeGroup& group = found[series_parts.of(*facts[i].row)][gpus];
    group.gpus = gpus;
    group.rows.push_back(&facts[i]);
  }
  std::map<Parts, std::set<int>> gaps;
  for (const Row& gap : study.gaps) {
    gaps[series_parts.of(gap)].insert(gap.first()->layout.gpus);
  }
  std::vector<std::pair<Parts, ScalingSeries>> all_series;
  for (auto& [parts, groups] : found) {
    if (std::ranges::all_of(groups, [](const auto& each) { return each.second.is_base(); }))
      continue;
    if (comparison.base == Base::matched) add_borrowed_base(groups, study, facts);
    ScalingSeries series;
    for (const int gpus : gaps[parts]) {
      if (!groups.contains(gpus)) series.gaps.push_back(gpus);
    }
    for (auto& [gpus, group] : groups) series.groups.push_back(std::move(group));
    all_series.emplace_back(parts, std::move(series));
  }
  name_series(all_series);
  return mapped(all_series, [](auto& series) { return std::move(series.second); });
}

std::vector<RowSeries> make_row_series(const Study& study, const Comparison& comparison) {
  const auto has_cost = [&](const Run& run) {
    return (comparison.rates ? run.samples_per_second : run.fit_seconds()).has_value();
  };
  std::map<Parts, std::map<int, std::size_t>> found;  // the index of a row
  const auto add = [&](std::map<int, std::size_t>& rows, std::size_t index) {
    const Row& row = study.rows[index];
    if (!reached_goal(row) || !std::ranges::all_of(row.runs, has_cost)) return;
    const auto [at, is_new] = rows.emplace(row.first()->layout.gpus, index);
    const auto cost = [&](std::size_t i) {
      return mean_cost(study.rows[i], comparison.rates).value;
    };
    if (!is_new && cost(index) < cost(at->second)) at->second = index;
  };
  const SeriesParts series_parts(study, comparison, true);
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    add(found[series_parts.of(study.rows[i])], i);
  }
  std::vector<std::pair<Parts, RowSeries>> all_series;
  for (auto& [parts, rows] : found) {
    if (rows.empty()) continue;
    const auto& base = comparison.speed_ups[rows.begin()->second];
    if (base && study.rows[base->base].first()->layout.gpus == 1) add(rows, base->base);
    RowSeries series;
    for (const auto& [gpus, index] : rows) series.rows.push_back(&study.rows[index]);
    all_series.emplace_back(parts, std::move(series));
  }
  // One replica needs no backend: where others begin with it, it is no series by itself.
  const auto is_base = [&](const auto& entry) {
    const auto& rows = entry.second.rows;
    return rows.size() == 1 && rows[0]->first()->layout.gpus == 1 &&
           std::ranges::any_of(all_series, [&](const auto& other) {
             return other.second.rows.size() > 1 && other.second.rows[0] == rows[0];
           });
  };
  std::vector<std::pair<Parts, RowSeries>> kept;
  std::ranges::remove_copy_if(all_series, std::back_inserter(kept), is_base);
  name_series(kept);
  return mapped(kept, [](auto& series) { return std::move(series.second); });
}

std::optional<double> mean(const Row& row, const RunFact& fact) {
  const std::vector<double> weights = run_weights(row);
  double sum = 0, all = 0;
  for (std::size_t i = 0; i < row.runs.size(); ++i) {
    if (const auto value = fact(row.runs[i])) {
      sum += weights[i] * *value;
      all += weights[i];
    }
  }
  return all > 0 ? std::optional(sum / all) : std::nullopt;
}

std::optional<Estimate> estimate(const Row& row, const RunFact& fact) {
  const std::vector<double> all = unit_values(row, [&](const Run& run) { return fact(run); });
  if (all.empty()) return std::nullopt;
  Estimate result = geometric_mean(all, find_stopping(row));
  if (row.tainted) result.interval.reset();
  return result;
}

RowFacts row_facts(const Study& study, const Comparison& comparison, std::size_t index) {
  const Row& row = study.rows[index];
  const auto& speed_up = comparison.speed_ups[index];
  RowFacts facts;
  facts.row = &row;
  facts.speed_up = speed_up ? &*speed_up : nullptr;
  facts.among_all = &comparison.among_all[index];
  facts.fit_seconds = estimate(row, &Run::fit_seconds);
  facts.samples_per_second = estimate(row, &Run::samples_per_second);
  facts.samples_per_second_per_replica =
      divided(facts.samples_per_second, row.first()->layout.gpus);
  if (speed_up && speed_up->efficiency) {
    facts.efficiency =
        divided(speed_up->ratio.estimate, speed_up->ratio.estimate.value / *speed_up->efficiency);
  }
  if (speed_up) {
    const auto ratio = energy_efficiency(study.rows[speed_up->base], row);
    if (ratio) facts.energy_efficiency = ratio->estimate;
    if (ratio && speed_up->base == index) facts.energy_efficiency->interval.reset();
  }
  facts.step_seconds = mean(row, &Run::step_seconds);
  facts.utilization = share(row, &Run::utilization);
  facts.input_stall = share_of_step(row, &PhaseSeconds::input);
  facts.exposed_communication = share_of_step(row, &PhaseSeconds::communication);
  return facts;
}

}  // namespace paceline

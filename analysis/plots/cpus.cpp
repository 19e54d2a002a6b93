// What more CPUs bring at each size.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/plots/study_plots.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostMaps = 4, kMostColumns = 9, kMostRows = 12;
constexpr double kDarkest = 1.3;  // times the best of its size

using MapKey = std::tuple<std::string, std::string, std::string>;  // kind, system, backend

struct Cells {
  std::map<int, std::map<double, double>> cost;  // by size and CPUs: the fastest row's
  std::set<double> cpus;
};

// Seconds, or seconds per thousand samples where only rates compare.
double measure_cost(const RowFacts& row, bool rates) {
  return rates ? 1000 / row.samples_per_second->value : row.fit_seconds->value;
}

std::map<MapKey, Cells> grouped(const PlotSource& source) {
  std::map<MapKey, Cells> groups;
  for (const RowFacts& row : source.facts) {
    const Run& run = row.run();
    const auto cpus = run.matched_cpus();
    if (!cpus) continue;
    Cells& cells = groups[{run->kind, run.system, run.backend}];
    const double cost = measure_cost(row, source.comparison.rates);
    const auto [it, first] = cells.cost[run->layout.gpus].emplace(*cpus, cost);
    if (!first) it->second = std::min(it->second, cost);
    cells.cpus.insert(*cpus);
  }
  return groups;
}

bool is_worth_a_map(const Cells& cells) {
  if (cells.cpus.size() > kMostColumns || cells.cost.size() > kMostRows) return false;
  return std::ranges::any_of(cells.cost, [](const auto& size) { return size.second.size() > 1; });
}

HeatMap make_heat_map(const PlotSource& source, const Cells& cells) {
  HeatMap map;
  for (const double cpus : cells.cpus) map.columns.push_back(fmt::format("{:g}", cpus));
  for (const auto& [gpus, row] : cells.cost) {
    map.rows.push_back(std::to_string(gpus));
    double best = row.begin()->second;
    for (const auto& [cpus, cost] : row) best = std::min(best, cost);
    auto& line = map.cells.emplace_back();
    for (const double cpus : cells.cpus) {
      const auto found = row.find(cpus);
      if (found == row.end()) {
        line.emplace_back();
        continue;
      }
      const double slower = found->second / best;
      const double heat = std::clamp((slower - 1) / (kDarkest - 1), 0.0, 1.0);
      const std::string value = source.comparison.rates
                                    ? source.study.unit.text(1000 / found->second)
                                    : seconds_text(found->second);
      line.push_back(HeatCell{
          value, slower == 1 ? "best" : fmt::format("+{:.1f} %", 100 * (slower - 1)), heat});
    }
  }
  return map;
}

}  // namespace

// Points that differ in CPUs: seconds, coloured by how much slower they are than the best of their
// size. One plot per backend and system. Needs two different numbers of CPUs at one size.
std::vector<Plot> cpus_plots(const PlotSource& source) {
  std::vector<Plot> plots;
  for (const auto& [group, cells] : grouped(source)) {
    if (!is_worth_a_map(cells) || plots.size() == kMostMaps) continue;
    const auto& [kind, system, backend] = group;
    const std::string whose = system + (system.empty() || backend.empty() ? "" : ", ") + backend;
    plots.push_back(
        {.name = plots.empty() ? "cpus" : fmt::format("cpus-backend{}", plots.size() + 1),
         .title = "CPUs per replica: " + source.title,
         .subtitle = fmt::format(
             "{}{}{}; darker: slower than the best of its row", whose, whose.empty() ? "" : ": ",
             source.comparison.rates ? source.study.unit.long_rate() : "fit seconds"),
         .x_label = source.study.replicas_are_cores ? "CPUs per replica" : "cpus-per-task",
         .y_label = source.study.replicas_are_cores ? "replicas" : "GPUs",
         .body = make_heat_map(source, cells)});
  }
  return plots;
}

}  // namespace paceline

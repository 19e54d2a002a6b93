// Backends side by side where they ran the same sizes with the same CPUs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/plots/study_plots.h"
#include "analysis/study/point_names.h"

namespace paceline {

namespace {

constexpr std::size_t kMostGroups = 12, kMostBackends = 8;

using Setting = std::tuple<int, double, int>;  // gpus, CPUs of a replica, nodes

// The fastest row of each backend in each setting of several replicas.
std::map<Setting, std::map<std::string, const RowFacts*>> settings_of(const PlotSource& source) {
  std::map<Setting, std::map<std::string, const RowFacts*>> settings;
  for (const RowFacts& row : source.facts) {
    const Run& run = row.run();
    if (run.kind != "measured" || run.gpus == 1 || !row.samples_per_second) continue;
    const Setting setting = {run.gpus, run.cpus_per_replica().value_or(0), run.nodes.value_or(0)};
    const RowFacts*& best = settings[setting][run.backend];
    if (!best || row.samples_per_second->value > best->samples_per_second->value) best = &row;
  }
  std::erase_if(settings, [](const auto& setting) { return setting.second.size() < 2; });
  return settings;
}

std::string name_of(const PlotSource& source, const Setting& setting) {
  const auto [gpus, cpus, nodes] = setting;
  std::string name = counted_replicas(source.study, gpus);
  if (cpus > 0) name += fmt::format(", {:g} CPU{} each", cpus, cpus == 1 ? "" : "s");
  return nodes > 1 ? name + fmt::format(", {} nodes", nodes) : name;
}

Bar bar_of(const RowFacts& row) {
  const Estimate& rate = *row.samples_per_second_per_replica;
  return {rate.value, rate.interval, fmt::format("{:.{}f}", rate.value, rate.value < 100 ? 1 : 0)};
}

}  // namespace

std::vector<Plot> backend_plots(const PlotSource& source) {
  const auto settings = settings_of(source);
  std::set<std::string> backends;
  for (const auto& [setting, rows] : settings) {
    for (const auto& [backend, row] : rows) backends.insert(backend);
  }
  if (settings.empty() || settings.size() > kMostGroups || backends.size() > kMostBackends) {
    return {};
  }
  Bars bars;
  for (const auto& [setting, rows] : settings) bars.groups.push_back(name_of(source, setting));
  for (const std::string& backend : backends) {
    BarSeries series{backend.empty() ? "not stated" : backend, {}};
    for (const auto& [setting, rows] : settings) {
      const auto found = rows.find(backend);
      series.bars.push_back(found == rows.end() ? std::nullopt
                                                : std::optional(bar_of(*found->second)));
    }
    bars.series.push_back(std::move(series));
  }
  Plot plot;
  plot.name = "backends";
  plot.title = "Backends: " + source.title;
  plot.subtitle = "backends compared at the same size and CPUs; lines: 95 % intervals";
  plot.x_label = source.study.replicas_are_cores ? "samples per second per replica"
                                                 : "samples per second per GPU";
  plot.body = std::move(bars);
  return {plot};
}

}  // namespace paceline

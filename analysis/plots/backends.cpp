// Backends side by side where they ran the same sizes with the same CPUs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "analysis/plots/study_plots.h"
#include "analysis/study/labels.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostGroups = 12, kMostBackends = 8;

// All that rows of several backends have in common.
struct Setting {
  std::string system;
  std::vector<std::string> axes;  // "bucket_mb 8"
  int gpus = 0;
  double cpus = 0;  // of a replica
  int nodes = 0;

  bool operator<(const Setting& other) const {
    return std::tie(system, axes, gpus, cpus, nodes) <
           std::tie(other.system, other.axes, other.gpus, other.cpus, other.nodes);
  }
};

using BackendRows = std::map<Setting, std::map<std::string, const RowFacts*>>;

Setting make_setting(const Study& study, const Run& run) {
  Setting setting{run.system,
                  {},
                  run->layout.gpus,
                  run.cpus_per_replica().value_or(0),
                  run->layout.nodes.value_or(0)};
  for (const std::string& axis : study.axes) {
    setting.axes.push_back(axis + " " + run->parameters.text(axis).value_or("-"));
  }
  return setting;
}

// The rows of each backend in each setting of several replicas that several backends ran.
BackendRows group_settings(const PlotSource& source) {
  BackendRows settings;
  for (const RowFacts& row : source.facts) {
    const Run& run = row.run();
    const bool has_share = row.samples_per_second && source.study.unit.better != "less";
    if (run->kind != "measured" || run->layout.gpus == 1 || !has_share) continue;
    settings[make_setting(source.study, run)].emplace(run.backend, &row);
  }
  std::erase_if(settings, [](const auto& setting) { return setting.second.size() < 2; });
  return settings;
}

// Leaves the largest sizes.
void keep_largest(BackendRows& settings) {
  std::vector<int> sizes = mapped(settings, [](const auto& each) { return each.first.gpus; });
  std::ranges::sort(sizes, std::greater());
  const int least = sizes.size() > kMostGroups ? sizes[kMostGroups] + 1 : 0;
  std::erase_if(settings, [&](const auto& setting) { return setting.first.gpus < least; });
}

std::string series_name(const PlotSource& source, const Setting& setting) {
  std::vector<std::string> parts = setting.axes;
  if (!setting.system.empty()) parts.insert(parts.begin(), setting.system);
  parts.push_back(counted_replicas(source.study, setting.gpus));
  if (setting.cpus > 0) {
    parts.push_back(counted(setting.cpus, "CPU") + " each");
  }
  if (setting.nodes > 1) parts.push_back(fmt::format("{} nodes", setting.nodes));
  return join(parts, ", ");
}

Bar make_bar(const RowFacts& row) {
  const Estimate& rate = *row.samples_per_second_per_replica;
  return {rate.value, rate.interval, fmt::format("{:.{}f}", rate.value, rate.value < 100 ? 1 : 0)};
}

}  // namespace

// Samples per second and replica of backends that ran the same sizes with the same CPUs.
std::vector<Plot> backend_plots(const PlotSource& source) {
  BackendRows settings = group_settings(source);
  const std::size_t all = settings.size();
  keep_largest(settings);
  std::set<std::string> backends;
  for (const auto& [setting, rows] : settings) {
    for (const auto& [backend, row] : rows) backends.insert(backend);
  }
  if (settings.empty() || backends.size() > kMostBackends) return {};
  Bars bars;
  for (const auto& [setting, rows] : settings) bars.groups.push_back(series_name(source, setting));
  for (const std::string& backend : backends) {
    BarSeries series{backend.empty() ? "not stated" : backend, {}};
    for (const auto& [setting, rows] : settings) {
      const auto found = rows.find(backend);
      series.bars.push_back(found == rows.end() ? std::nullopt
                                                : std::optional(make_bar(*found->second)));
    }
    bars.series.push_back(std::move(series));
  }
  Plot plot{.name = "backends", .title = "Backends: " + source.title};
  plot.subtitle = "backends compared at the same size and CPUs; lines: 95 % intervals";
  if (settings.size() < all) {
    plot.subtitle += fmt::format("; the largest {} of {}", settings.size(), all);
  }
  plot.x_label = source.study.unit.long_rate() +
                 (source.study.replicas_are_cores ? " per replica" : " per GPU");
  plot.body = std::move(bars);
  return {plot};
}

}  // namespace paceline

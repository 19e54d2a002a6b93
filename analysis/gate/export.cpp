#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/gate/render.h"
#include "analysis/statistics/statistics.h"
#include "analysis/study/comparison.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kEndOfMetrics[] = "# EOF\n";

std::vector<double> list_seconds(const Subject& subject) {
  const auto it = subject.samples.find(Quantity::time);
  if (it == subject.samples.end()) return {};
  return mapped(it->second, &Sample::value);
}

std::string unit_name(const Subject& subject) {
  return subject.is_rated ? subject.unit.cost() : "s";
}

bool is_github_action_row(const Json& row) {
  if (!row.is_object() || !row.contains("name") || !row.contains("value")) return false;
  const std::string unit = row.value("unit", ""), extra = row.value("extra", "");
  return !unit.empty() && (extra.ends_with(" run") || extra.ends_with(" runs"));
}

std::string study_names(const Subject& subject) {
  return join({subject.studies.begin(), subject.studies.end()}, ", ");
}

// study="quick"
std::string label(const char* name, const std::string& value) {
  return fmt::format("{}=\"{}\"", name,
                     escaped(value, {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', " "}}));
}

bool is_in_name(const std::string& name, std::string_view axis) {
  const std::string key = std::string(axis) + "=";
  return name.find(" " + key) != std::string::npos || name.find("," + key) != std::string::npos;
}

// Parameters by which series are told apart: the layout, and what points are named by.
std::set<std::string> list_axes(const Side& side) {
  std::set<std::string> axes;
  for (const Subject& subject : side.subjects) {
    for (const auto& [name, value] : subject.parameters.values()) {
      if (has_role(name, Role::layout) || is_in_name(subject.name, name)) axes.insert(name);
    }
  }
  return axes;
}

// {study="quick",name="mnist-cnn gpus=2,backend=mpi",workload="mnist-cnn",gpus="2",backend="mpi"}
std::string metric_labels(const Subject& subject, const std::set<std::string>& axes) {
  std::string labels;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) labels += (labels.empty() ? "" : ",") + label(name.c_str(), value);
  };
  add("study", study_names(subject));
  add("name", subject.name);
  add("workload", subject.workload);
  for (const auto& [name, value] : subject.parameters.values()) {
    if (!axes.contains(name)) continue;
    add(name, name == "program" ? name_of_program(to_text(value)) : to_text(value));
  }
  return "{" + labels + "}";
}

// A gauge for each point, and the ends of its interval.
struct Gauges {
  std::string mean, low, high;

  void add(const std::string& labels, const std::string& name, const Estimate& estimate) {
    mean += fmt::format("{}{} {}\n", name, labels, estimate.value);
    if (!estimate.interval) return;
    low += fmt::format("{}_low{} {}\n", name, labels, estimate.interval->low);
    high += fmt::format("{}_high{} {}\n", name, labels, estimate.interval->high);
  }
};

std::string group(const std::string& name, const std::string& help, const std::string& samples) {
  return samples.empty()
             ? ""
             : fmt::format("# TYPE {0} gauge\n# HELP {0} {1}\n{2}", name, help, samples);
}

std::string families(const std::string& name, const std::string& help, const Gauges& gauges) {
  return group(name, help, gauges.mean) +
         group(name + "_low", "95 % interval, low end", gauges.low) +
         group(name + "_high", "95 % interval, high end", gauges.high);
}

// By the file of each run. A row that trained worse than its base, or did other work, has none.
std::map<std::string, SpeedUp> list_speed_ups(const std::vector<Study>& studies) {
  std::map<std::string, SpeedUp> speed_ups;
  for (const Study& study : studies) {
    const Comparison comparison = compare(study, default_base(study));
    for (std::size_t i = 0; i < study.rows.size(); ++i) {
      const auto& speed_up = comparison.speed_ups[i];
      if (!speed_up || speed_up->standing.is_barred()) continue;
      for (const Run& run : study.rows[i].runs) speed_ups.emplace(run.where, *speed_up);
    }
  }
  return speed_ups;
}

}  // namespace

std::string github_action_json(const Side& side) {
  Json rows = Json::array();
  for (const Subject& subject : side.subjects) {
    const std::vector<double> seconds = list_seconds(subject);
    if (seconds.empty()) continue;
    const Estimate mean = geometric_mean(seconds);
    Json row = {{"name", subject.name}, {"unit", unit_name(subject)}, {"value", mean.value}};
    if (mean.interval) {
      const double half_width =
          std::max(mean.interval->high - mean.value, mean.value - mean.interval->low);
      row["range"] = fmt::format("± {:.3g}", half_width);
    }
    row["extra"] = counted(seconds.size(), "run");
    rows.push_back(row);
  }
  return json_text(rows, 2) + '\n';
}

std::string open_metrics(const Side& side, const std::vector<Study>& studies) {
  const std::string run = "paceline_seconds";
  const std::set<std::string> axes = list_axes(side);
  const std::map<std::string, SpeedUp> speed_ups = list_speed_ups(studies);
  Gauges of_run, speed_up, efficiency;
  std::map<std::string, std::pair<std::string, Gauges>> rated;  // help and gauges by name
  std::string runs;
  for (const Subject& subject : side.subjects) {
    const std::vector<double> seconds = list_seconds(subject);
    if (seconds.empty()) continue;
    const std::string labels = metric_labels(subject, axes);
    const auto found =
        subject.members.empty() ? speed_ups.end() : speed_ups.find(subject.members.front().where);
    if (found != speed_ups.end()) {
      Estimate ratio = found->second.ratio.estimate;
      speed_up.add(labels, "paceline_speed_up", ratio);
      const double ideal = found->second.ideal;
      ratio.value /= ideal;
      if (ratio.interval)
        ratio.interval = {ratio.interval->low / ideal, ratio.interval->high / ideal};
      if (found->second.efficiency) efficiency.add(labels, "paceline_efficiency", ratio);
    }
    const Unit& unit = subject.unit;
    if (!subject.is_rated) {
      of_run.add(labels, run, geometric_mean(seconds));
    } else if (unit.is_own()) {  // as it is; gauges have no direction
      const Estimate cost = geometric_mean(seconds);
      const Estimate rate = unit.better == "less" ? cost : *Unit{"", "less"}.shown(cost);
      rated["paceline_" + unit.rate_key()].first = "mean " + unit.name;
      rated["paceline_" + unit.rate_key()].second.add(labels, "paceline_" + unit.rate_key(), rate);
    } else {
      auto& [help, gauges] = rated[run + "_per_" + unit.one()];
      help = "mean seconds of a " + unit.one() + ", of runs that state their rate";
      gauges.add(labels, run + "_per_" + unit.one(), geometric_mean(seconds));
    }
    runs += fmt::format("paceline_runs{} {}\n", labels, seconds.size());
  }
  std::string of_rates;
  for (const auto& [name, family] : rated) of_rates += families(name, family.first, family.second);
  return families(run, "mean seconds of a run", of_run) + of_rates +
         families("paceline_speed_up", "times as fast as the base, as in the table of report",
                  speed_up) +
         families("paceline_efficiency", "speed-up over the ideal one, 1 is perfect", efficiency) +
         group("paceline_runs", "runs", runs) + kEndOfMetrics;
}

bool is_export(std::string_view text) {
  if (text.starts_with("# TYPE paceline_") && text.ends_with(kEndOfMetrics)) return true;
  try {
    const Json json = Json::parse(text);
    return json.is_array() && std::all_of(json.begin(), json.end(), is_github_action_row);
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace paceline

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/gate/render.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kEndOfMetrics[] = "# EOF\n";

std::vector<double> list_seconds(const Subject& subject) {
  std::vector<double> seconds;
  const auto it = subject.samples.find(Quantity::time);
  if (it == subject.samples.end()) return seconds;
  for (const Sample& sample : it->second) seconds.push_back(sample.value);
  return seconds;
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

std::string metric_labels(const Subject& subject) {
  std::string labels = label("name", subject.name);
  if (!subject.studies.empty()) labels = label("study", study_names(subject)) + "," + labels;
  return "{" + labels + "}";
}

// A gauge for each point, and the ends of its interval.
struct Gauges {
  std::string mean, low, high;

  void add(const Subject& subject, const std::string& name, const Estimate& estimate) {
    const std::string labels = metric_labels(subject);
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

std::string open_metrics(const Side& side) {
  const std::string run = "paceline_seconds";
  Gauges of_run;
  std::map<std::string, std::pair<std::string, Gauges>> rated;  // help and gauges by name
  std::string runs;
  for (const Subject& subject : side.subjects) {
    const std::vector<double> seconds = list_seconds(subject);
    if (seconds.empty()) continue;
    const Unit& unit = subject.unit;
    if (!subject.is_rated) {
      of_run.add(subject, run, geometric_mean(seconds));
    } else if (unit.is_own()) {  // as it is; gauges have no direction
      const Estimate cost = geometric_mean(seconds);
      const Estimate rate = unit.better == "less" ? cost : *Unit{"", "less"}.shown(cost);
      rated["paceline_" + unit.rate_key()].first = "mean " + unit.name;
      rated["paceline_" + unit.rate_key()].second.add(subject, "paceline_" + unit.rate_key(), rate);
    } else {
      auto& [help, gauges] = rated[run + "_per_" + unit.one()];
      help = "mean seconds of a " + unit.one() + ", of runs that state their rate";
      gauges.add(subject, run + "_per_" + unit.one(), geometric_mean(seconds));
    }
    runs += fmt::format("paceline_runs{} {}\n", metric_labels(subject), seconds.size());
  }
  std::string of_rates;
  for (const auto& [name, family] : rated) of_rates += families(name, family.first, family.second);
  return families(run, "mean seconds of a run", of_run) + of_rates +
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

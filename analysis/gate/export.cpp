#include "analysis/gate/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/statistics/statistics.h"
#include "engine/core/json.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kExecutable[] = "paceline";
constexpr char kEndOfMetrics[] = "# EOF\n";

std::vector<double> seconds_of(const Subject& subject) {
  std::vector<double> seconds;
  const auto it = subject.samples.find(Quantity::time);
  if (it == subject.samples.end()) return seconds;
  for (const Sample& sample : it->second) seconds.push_back(sample.value);
  return seconds;
}

bool is_github_action_row(const Json& row) {
  if (!row.is_object() || !row.contains("name") || !row.contains("value")) return false;
  const std::string extra = row.value("extra", "");
  return row.value("unit", "") == "s" && (extra.ends_with(" run") || extra.ends_with(" runs"));
}

// {name="mnist-cnn, 2 replicas"}
std::string label_of(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return "{name=\"" + text + "\"}";
}

std::string text_of(const Json& document) {
  return json_text(document, 2) + '\n';
}

}  // namespace

std::string google_benchmark_json(const Side& side) {
  Json benchmarks = Json::array();
  for (std::size_t i = 0; i < side.subjects.size(); ++i) {
    const Subject& subject = side.subjects[i];
    const std::vector<double> seconds = seconds_of(subject);
    for (std::size_t repetition = 0; repetition < seconds.size(); ++repetition) {
      const double milliseconds = seconds[repetition] * 1e3;
      benchmarks.push_back({{"name", subject.name},
                            {"family_index", i},
                            {"per_family_instance_index", 0},
                            {"run_name", subject.name},
                            {"run_type", "iteration"},
                            {"repetitions", seconds.size()},
                            {"repetition_index", repetition},
                            {"threads", 1},
                            {"iterations", 1},
                            {"real_time", milliseconds},
                            {"cpu_time", milliseconds},
                            {"time_unit", "ms"}});
    }
  }
  const auto all = [](const std::set<std::string>& names) {
    return join({names.begin(), names.end()}, ", ");
  };
  return text_of({{"context",
                   {{"date", side.started_at},
                    {"executable", kExecutable},
                    {"host_name", all(side.hosts)},
                    {"machine", all(side.machines)},
                    {"sessions", all(side.sessions)},
                    {"library_build_type", "release"}}},
                  {"benchmarks", benchmarks}});
}

std::string github_action_json(const Side& side) {
  Json rows = Json::array();
  for (const Subject& subject : side.subjects) {
    const std::vector<double> seconds = seconds_of(subject);
    if (seconds.empty()) continue;
    const Estimate mean = geometric_mean(seconds);
    Json row = {{"name", subject.name}, {"unit", "s"}, {"value", mean.value}};
    if (mean.interval) {
      const double half_width =
          std::max(mean.interval->high - mean.value, mean.value - mean.interval->low);
      row["range"] = fmt::format("± {:.3g}", half_width);
    }
    row["extra"] = fmt::format("{} run{}", seconds.size(), seconds.size() == 1 ? "" : "s");
    rows.push_back(row);
  }
  return text_of(rows);
}

std::string open_metrics(const Side& side) {
  std::string means, lows, highs, runs;
  for (const Subject& subject : side.subjects) {
    const std::vector<double> seconds = seconds_of(subject);
    if (seconds.empty()) continue;
    const Estimate mean = geometric_mean(seconds);
    const std::string name = label_of(subject.name);
    means += fmt::format("paceline_seconds{} {}\n", name, mean.value);
    runs += fmt::format("paceline_runs{} {}\n", name, seconds.size());
    if (!mean.interval) continue;
    lows += fmt::format("paceline_seconds_low{} {}\n", name, mean.interval->low);
    highs += fmt::format("paceline_seconds_high{} {}\n", name, mean.interval->high);
  }
  const auto family = [](const char* metric, const char* help, const std::string& samples) {
    return samples.empty()
               ? ""
               : fmt::format("# TYPE {0} gauge\n# HELP {0} {1}\n{2}", metric, help, samples);
  };
  return family("paceline_seconds", "mean seconds of a run", means) +
         family("paceline_seconds_low", "95 % interval, low end", lows) +
         family("paceline_seconds_high", "95 % interval, high end", highs) +
         family("paceline_runs", "runs", runs) + kEndOfMetrics;
}

bool is_export(std::string_view text) {
  if (text.starts_with("# TYPE paceline_") && text.ends_with(kEndOfMetrics)) return true;
  try {
    const Json json = Json::parse(text);
    if (json.is_array()) return std::all_of(json.begin(), json.end(), is_github_action_row);
    return json.contains("benchmarks") && json.at("context").value("executable", "") == kExecutable;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace paceline

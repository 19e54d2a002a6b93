#include "analysis/gate/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/statistics.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::vector<double> seconds_of(const Subject& subject) {
  std::vector<double> seconds;
  const auto it = subject.samples.find(Quantity::time);
  if (it == subject.samples.end()) return seconds;
  for (const Sample& sample : it->second) seconds.push_back(sample.value);
  return seconds;
}

std::string text_of(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
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
                    {"executable", "paceline"},
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

}  // namespace paceline

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/archive/study_archive.h"
#include "results/machine.h"
#include "results/match.h"
#include "results/run_record.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kShownLines = 20;

using Names = std::vector<std::string>;

bool is_result(const Record& record) {
  return record->completed() && !record->control;
}

// A run is one of a planned point if it has all that identifies the point.
std::vector<MissingRuns> find_missing(const ExpectedRuns& plan,
                                      const std::vector<Record>& records) {
  if (plan.points.empty()) return {};
  std::vector<const Point*> points = pointers_to(plan.points);
  const Names varying = varying_parameters(points);
  std::map<Names, std::unordered_map<PointKey, std::set<int>>> done;
  std::vector<MissingRuns> missing;
  for (const Point& point : plan.points) {
    MatchRule rule{.only = Names()};
    Point shown;
    for (const auto& [name, value] : point.values()) {
      if (find_parameter(name)->identity()) rule.only->push_back(name);
      if (std::ranges::find(varying, name) != varying.end()) shown.set(name, value);
    }
    const auto [repeats, is_new] = done.try_emplace(*rule.only);
    for (std::size_t i = 0; is_new && i < records.size(); ++i) {
      const RunRecord& run = *records[i];
      if (!is_result(records[i]) || run.workload != plan.workload) continue;
      repeats->second[PointKey({run.parameters}, rule)].insert(run.repeat);
    }
    const std::set<int>& there = repeats->second[PointKey({point}, rule)];
    const std::string label = shown.text();
    MissingRuns lacks{label.empty() ? point.text() : label, {}};
    for (int repeat = 1; repeat <= plan.repeats; ++repeat) {
      if (!there.contains(repeat)) lacks.repeats.push_back(repeat);
    }
    if (!lacks.repeats.empty()) missing.push_back(std::move(lacks));
  }
  return missing;
}

std::vector<std::pair<std::string, std::size_t>> count_machines(
    const std::vector<Record>& records) {
  const std::vector<Machine> all = mapped_if(records, is_result, identify_machine);
  const std::vector<Machine> kinds = kinds_of_machines(all);
  std::map<std::string, std::size_t> runs;
  for (const Machine& machine : all) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const Machine& each) { return alike(each, machine); });
    ++runs[machine.is_known() && kind != kinds.end() ? kind->text() : Machine().text()];
  }
  return {runs.begin(), runs.end()};
}

}  // namespace

fs::path study_path(const fs::path& folder) {
  const fs::path path = (folder / "").lexically_normal();
  return path == "." ? path : path.parent_path();  // where the study is the current folder
}

StoreContent load_study(const fs::path& study) {
  StoreContent store = load_store(study);
  for (const Record& record : store.records) {
    if (fs::path(record.where()).parent_path().parent_path() == study) continue;
    if (record->kind == "published") {
      throw input_error("the folder holds a published table, which has no runs", study.string(),
                        "copy the folder as it is");
    }
    throw input_error("the folder is not that of one study: it has " + record.where(),
                      study.string(), "name the folder of one study");
  }
  return store;
}

StudySummary summarize(const std::optional<ExpectedRuns>& plan, const std::vector<Record>& records,
                       const std::string& where) {
  std::set<std::string> names;
  if (plan) names.insert(plan->study);
  for (const Record& record : records) names.insert(record->study);
  names.erase("");
  if (names.size() != 1) {
    throw input_error(names.empty() ? "the folder holds no study"
                                    : "the folder holds several studies: " +
                                          names_text({names.begin(), names.end()}),
                      where, "name the folder of one study");
  }
  StudySummary summary;
  summary.study = *names.begin();
  summary.records = records.size();
  summary.completed = count_where(records, [](const Record& r) { return is_result(r); });
  if (plan) {
    summary.planned = plan->points.size() * static_cast<std::size_t>(plan->repeats);
    summary.missing = find_missing(*plan, records);
  }
  summary.machines = count_machines(records);
  return summary;
}

Json to_json(const StudySummary& summary) {
  Json json = {
      {"study", summary.study}, {"records", summary.records}, {"completed", summary.completed},
      {"planned", nullptr},     {"missing", nullptr},         {"machines", Json::array()}};
  if (summary.planned) {
    json["planned"] = *summary.planned;
    json["missing"] = Json::array();
    for (const MissingRuns& lacks : summary.missing) {
      json["missing"].push_back({{"point", lacks.point}, {"repeats", lacks.repeats}});
    }
  }
  for (const auto& [machine, runs] : summary.machines) {
    json["machines"].push_back({{"machine", machine}, {"runs", runs}});
  }
  return json;
}

std::string to_text(const StudySummary& summary) {
  std::string text = "the study has no plan, so nobody knows what is missing\n";
  if (summary.planned) {
    std::size_t count = 0;
    for (const MissingRuns& lacks : summary.missing) count += lacks.repeats.size();
    text = fmt::format("{} planned, {}\n", counted(*summary.planned, "run"),
                       count == 0 ? "none missing" : fmt::format("{} missing:", count));
  }
  std::vector<std::string> points = mapped(summary.missing, [](const MissingRuns& lacks) {
    return fmt::format("{} repeat {}", lacks.point, numbers_text(lacks.repeats));
  });
  if (!points.empty()) text += "  " + join_first(kShownLines, points, "\n  ") + "\n";
  for (const auto& [machine, runs] : summary.machines) {
    text += fmt::format("{} of {}\n", counted(runs, "completed run"), machine);
  }
  return text;
}

}  // namespace paceline

#include "analysis/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostLines = 5;

// Long lists are cut, and say so.
void add_lines(std::vector<std::string>& notes, const std::vector<std::string>& lines,
               const char* rest) {
  for (std::size_t i = 0; i < std::min(kMostLines, lines.size()); ++i) notes.push_back(lines[i]);
  if (lines.size() > kMostLines) {
    notes.push_back(fmt::format("{} more {}", lines.size() - kMostLines, rest));
  }
}

std::string point_of(const Run& run) {
  return fmt::format("{}|{}|{}", run.kind, run.parameters.text(), run.repeat);
}

std::vector<std::string> unfinished(const std::vector<Run>& runs) {
  std::set<std::string> completed;
  for (const Run& run : runs) {
    if (run.status == "completed") completed.insert(point_of(run));
  }
  std::vector<std::string> lines;
  for (const Run& run : runs) {
    if (run.status == "completed" || completed.contains(point_of(run))) continue;
    lines.push_back(fmt::format("not in the table: a run that ended as {}{} ({})", run.status,
                                run.reason.empty() ? "" : ": " + run.reason, run.where));
  }
  return lines;
}

template <typename Field>
std::map<std::string, std::size_t> counted(const Study& study, Field field) {
  std::map<std::string, std::size_t> counts;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) {
      if (const std::string value = field(run); !value.empty()) ++counts[value];
    }
  }
  return counts;
}

std::string listed(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [value, count] : counts) {
    parts.push_back(fmt::format("{} ({} run{})", value, count, count == 1 ? "" : "s"));
  }
  return join(parts, ", ");
}

// What must be alike in runs that are averaged or compared, and what to say where it is not.
constexpr std::pair<const char*, const char*> kUnlike[] = {
    {"machine", "unlike machines"}, {"GPU", "unlike GPUs"}, {"data", "unlike data"}};

std::string measured_origin(const Run& run, std::string_view name) {
  if (run.kind != "measured") return "";
  const auto found = std::find_if(run.origin.begin(), run.origin.end(),
                                  [&](const auto& fact) { return fact.first == name; });
  return found == run.origin.end() ? "" : found->second;
}

// Parameters that change from layout to layout, which the columns do not show.
std::vector<std::string> hidden_differences(const Study& study) {
  static const std::set<std::string, std::less<>> kFollow = {
      "gpus",      "nodes",           "cpus_per_task", "cpus_per_replica",  "backend",
      "precision", "global_batch",    "steps",         "batch_per_replica", "seed",
      "epochs",    "compute_threads", "accumulate"};
  std::map<std::string, std::set<std::string>> values;
  for (const Row& row : study.rows) {
    for (const auto& [name, value] : row.first().parameters.values()) {
      if (find_parameter(name)->identity) values[name].insert(to_text(value));
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, differing] : values) {
    const bool shown = std::find(study.axes.begin(), study.axes.end(), name) != study.axes.end();
    if (differing.size() > 1 && !shown && !kFollow.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace

std::vector<std::string> record_notes(const StoreContent& content, const std::vector<Run>& runs) {
  std::vector<std::string> ignored;
  for (const Rejected& rejected : content.rejected) {
    ignored.push_back("ignored record: " + rejected.reason);
  }
  std::vector<std::string> notes;
  add_lines(notes, ignored, "records were ignored");
  add_lines(notes, unfinished(runs), "runs did not complete");
  return notes;
}

std::vector<std::string> row_notes(const Study& study) {
  std::vector<std::string> notes;
  if (study.replicas_are_cores) {
    notes.push_back(
        "there is no GPU: a replica (column gpus) is a group of CPU cores of this machine, which "
        "share its memory bandwidth");
  }
  for (const auto& unlike : kUnlike) {
    const auto& name = unlike.first;
    const auto values = counted(study, [&](const Run& run) { return measured_origin(run, name); });
    if (values.size() < 2) continue;
    std::string loud = unlike.second;
    for (char& c : loud) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    notes.push_back(loud + ": " + listed(values));
  }
  const auto studies =
      counted(study, [](const Run& run) { return run.kind == "measured" ? run.study : ""; });
  if (studies.size() > 1) notes.push_back("records of several studies: " + listed(studies));
  const auto builds = counted(study, [](const Run& run) { return run.build; });
  if (builds.size() > 1) notes.push_back("records of several builds: " + listed(builds));
  if (const auto hidden = hidden_differences(study); !hidden.empty()) {
    notes.push_back("also differs between layouts: " + join(hidden, ", "));
  }
  std::size_t left_out = 0;
  bool tainted = false;
  for (const Row& row : study.rows) {
    left_out += row.left_out;
    tainted = tainted || row.tainted;
  }
  if (left_out > 0) {
    notes.push_back(fmt::format("{} resumed, throttled, oversubscribed or traced run{} left out",
                                left_out, left_out == 1 ? " is" : "s are"));
  }
  if (tainted)
    notes.push_back(
        "rows of only resumed, throttled, oversubscribed or traced runs have no interval");
  return notes;
}

std::string row_label(const Row& row) {
  if (!row.gap.empty()) return row.gap;
  std::set<std::string> labels;
  for (const Run& run : row.runs) {
    if (run.kind != "measured") labels.insert(run.kind);
    if (run.synthetic) labels.insert("synthetic");
    if (run.resumed) labels.insert("resumed");
    if (run.oversubscribed) labels.insert("oversubscribed");
    if (run.throttled) labels.insert("throttled");
    if (!run.goal.empty() && !run.goal_reached) labels.insert("goal not reached");
    if (run.traced) labels.insert("traced");
    for (const auto& [name, label] : kUnlike) {
      if (measured_origin(run, name) != measured_origin(row.first(), name)) labels.insert(label);
    }
  }
  return join({labels.begin(), labels.end()}, ", ");
}

std::string common_label(const Study& study) {
  const std::string label = row_label(study.rows.front());
  const bool all = std::all_of(study.rows.begin(), study.rows.end(),
                               [&](const Row& row) { return row_label(row) == label; });
  return all ? label : "";
}

}  // namespace paceline

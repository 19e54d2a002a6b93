#include "analysis/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "analysis/study/labels.h"
#include "analysis/study/rounds.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::optional<std::string> field(const Run& run, const std::string& key) {
  if (key == "kind") return run->kind;
  if (key == "study") return run->study;
  if (key == "session") return run->session;
  if (key == "build") return run->build();
  if (key == "system") return run.system;
  if (key == "workload") return run->workload;
  if (key == "program") {
    const auto tag = run->parameters.text(key);
    return tag ? std::optional(name_of_program(*tag)) : std::nullopt;
  }
  if (key == "precision") return run.precision;
  return run->parameters.text(key);
}

void check_key(const std::string& key) {
  std::vector<std::string> known = {"kind", "study", "session", "build", "system", "workload"};
  for (const Parameter& parameter : recorded_parameters()) known.emplace_back(parameter.name);
  if (std::find(known.begin(), known.end(), key) != known.end()) return;
  throw Error(ErrorKind::usage, fmt::format("records have no \"{}\"", key), "--only",
              suggestion(key, known));
}

// Runs of unlike machines share no row, and none is compared with another.
void name_machines(std::vector<Run>& runs) {
  std::vector<Machine> machines;
  for (const Run& run : runs) {
    if (run->kind == "measured") machines.push_back(run.machine);
  }
  const std::vector<Machine> kinds = kinds_of_machines(std::move(machines));
  const std::vector<std::string> names = names_of_kinds(kinds);
  for (Run& run : runs) {
    if (run->kind != "measured") continue;
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Machine& machine) {
      return run.machine.is_known() && alike(machine, run.machine);
    });
    const bool is_named = kinds.size() > 1 && kind != kinds.end();
    run.system = is_named ? names[static_cast<std::size_t>(kind - kinds.begin())] : "";
  }
}

std::vector<Run> selected_runs(const StoreContent& content,
                               const std::vector<Selection>& selections) {
  for (const Selection& selection : selections) check_key(selection.key);
  std::vector<Run> all, runs;
  all.reserve(content.records.size());
  for (const Record& record : content.records) all.push_back(make_run(record));
  name_machines(all);
  std::vector<std::set<std::string>> seen(selections.size());
  for (Run& run : all) {
    bool wanted = true;
    for (std::size_t i = 0; i < selections.size(); ++i) {
      const auto value = field(run, selections[i].key);
      if (value) seen[i].insert(*value);
      wanted = wanted && value == selections[i].value;
    }
    if (wanted && !selections.empty()) runs.push_back(std::move(run));
  }
  if (selections.empty()) return all;
  for (std::size_t i = 0; i < selections.size(); ++i) {
    if (seen[i].contains(selections[i].value)) continue;
    throw Error(ErrorKind::usage,
                fmt::format("no record has {} \"{}\"", selections[i].key, selections[i].value),
                "--only", "known: " + join({seen[i].begin(), seen[i].end()}, ", "));
  }
  name_machines(runs);  // the selections may leave but one
  return runs;
}

template <typename Which>
std::vector<Run> chosen(const std::vector<Run>& runs, Which which) {
  std::vector<Run> result;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(result), which);
  return result;
}

// Moves them out of `runs`.
template <typename Which>
std::vector<Run> taken(std::vector<Run>& runs, Which which) {
  const auto first =
      std::stable_partition(runs.begin(), runs.end(), [&](const Run& run) { return !which(run); });
  std::vector<Run> result(std::make_move_iterator(first), std::make_move_iterator(runs.end()));
  runs.erase(first, runs.end());
  return result;
}

void add_note(Study& study, const std::string& note) {
  if (!note.empty()) study.notes.push_back(note);
}

// Everything but layout, backend and seed.
std::string other_parameters(const Run& run) {
  std::string text;
  for (const auto& [name, value] : run->parameters.values()) {
    if (has_own_place(name) || !find_parameter(name)->identity()) continue;
    text += name + '=' + to_text(value) + ',';
  }
  return text;
}

std::string layout_key(const Run& run) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", run->kind, run.system, run.backend, run->layout.gpus,
                     run->layout.nodes.value_or(0), run->layout.ntasks.value_or(0),
                     run->layout.cpus_per_task.value_or(0));
}

std::string row_key(const Run& run) {
  return layout_key(run) + '|' + other_parameters(run);
}

std::string format_selections(const std::vector<Selection>& selections) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : selections) parts.push_back(key + "=" + value);
  return join(parts, ", ");
}

bool is_parameter(const std::string& key) {
  return find_parameter(key) != nullptr;
}

// Planned points that match. Plans have no session and no build, so selecting one drops the plan.
std::vector<ExpectedRuns> selected(std::vector<ExpectedRuns> plans,
                                   const std::vector<Selection>& selections) {
  for (const Selection& selection : selections) {
    const std::string &key = selection.key, &value = selection.value;
    for (ExpectedRuns& plan : plans) {
      const bool all = (key == "kind" && value == "measured") ||
                       (key == "study" && value == plan.study) ||
                       (key == "workload" && value == plan.workload);
      if (all) continue;
      std::erase_if(plan.points, [&](const Point& point) {
        return !is_parameter(key) || point.text(key).value_or(value) != value;
      });
    }
  }
  std::erase_if(plans, [](const ExpectedRuns& plan) { return plan.points.empty(); });
  return plans;
}

std::vector<Row> make_rows(std::vector<Run> runs) {
  std::unordered_map<std::string, std::size_t> index;
  std::vector<Row> rows;
  for (Run& run : runs) {
    const auto [it, first] = index.emplace(row_key(run), rows.size());
    if (first) rows.emplace_back();
    rows[it->second].runs.push_back(std::move(run));
  }
  for (Row& row : rows) {
    const auto clean = std::stable_partition(row.runs.begin(), row.runs.end(),
                                             [](const Run& run) { return !run.tainted(); });
    row.tainted = clean == row.runs.begin();
    if (row.tainted) continue;
    row.left_out = static_cast<std::size_t>(row.runs.end() - clean);
    row.runs.erase(clean, row.runs.end());
  }
  return rows;
}

void add_controls(std::vector<Row>& rows, const std::vector<Run>& controls) {
  if (controls.empty()) return;
  std::unordered_map<std::string, Row*> by_key;
  for (Row& row : rows) by_key.emplace(row_key(row.first()), &row);
  for (const Run& control : controls) {
    if (control.tainted() || control->status != "completed") continue;
    const auto row = by_key.find(row_key(control));
    if (row != by_key.end()) row->second->controls.push_back(control);
  }
}

std::string find_goal(const std::vector<Row>& rows) {
  const std::string& goal = rows.front().first().goal;
  const bool shared = std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
    return std::all_of(row.runs.begin(), row.runs.end(),
                       [&](const Run& run) { return run.goal == goal; });
  });
  return shared ? goal : "";
}

bool may_be_axis(const std::string& name) {
  return !has_own_place(name) && find_parameter(name)->identity();
}

// What differs between runs of one layout; not to have it is a value, too.
void add_differing(const std::vector<const Run*>& runs, std::set<std::string>& differing) {
  std::map<std::string, std::map<std::string, std::size_t>> values;
  for (const Run* run : runs) {
    for (const auto& [name, value] : run->record->parameters.values()) {
      if (may_be_axis(name)) ++values[name][to_text(value)];
    }
  }
  for (const auto& [name, counts] : values) {
    if (counts.size() > 1 || counts.begin()->second < runs.size()) differing.insert(name);
  }
}

// What was asked of a run that did not complete, and others of its size do not have.
void add_asked(const std::vector<Row>& rows, const std::vector<Run>& unfinished,
               std::set<std::string>& differing) {
  std::map<int, std::map<std::string, std::set<std::string>>> asked, had;
  const auto add = [](auto& values, const Run& run) {
    for (const auto& [name, value] : run->parameters.values()) {
      if (may_be_axis(name)) values[run->layout.gpus][name].insert(to_text(value));
    }
  };
  for (const Run& run : unfinished) add(asked, run);
  for (const Row& row : rows) add(had, row.first());
  for (auto& [gpus, values] : asked) {
    for (auto& [name, texts] : values) {
      const auto& others = had[gpus][name];
      texts.insert(others.begin(), others.end());
      if (texts.size() > 1) differing.insert(name);
    }
  }
}

// Gaps of a program that has not run at all are named after it.
bool are_programs_planned(const std::vector<Row>& rows, const std::vector<ExpectedRuns>& plans) {
  const auto ran = rows.front().first()->parameters.text("program");
  return std::ranges::any_of(plans, [&](const ExpectedRuns& plan) {
    return std::ranges::any_of(plan.points, [&](const Point& point) {
      return ran && point.text("program").value_or(*ran) != *ran;
    });
  });
}

// A parameter is an axis of its own where rows of one layout differ in it, or what was asked of
// a run that did not complete differs from what runs of its size have.
std::vector<std::string> find_axes(const std::vector<Row>& rows, const std::vector<Run>& unfinished,
                                   const std::vector<ExpectedRuns>& plans) {
  std::map<std::string, std::vector<const Run*>> layouts;
  for (const Row& row : rows) layouts[layout_key(row.first())].push_back(&row.first());
  std::set<std::string> differing;
  for (const auto& [layout, runs] : layouts) add_differing(runs, differing);
  add_asked(rows, unfinished, differing);
  if (are_programs_planned(rows, plans)) differing.insert("program");
  std::vector<std::string> axes;
  for (const Parameter& parameter : recorded_parameters()) {
    if (differing.contains(std::string(parameter.name))) axes.emplace_back(parameter.name);
  }
  return axes;
}

// Of a run that did not complete, whose precision may be the program's choice.
bool belongs_to(const Run& run, const Study& study) {
  return run->workload == study.workload && run.replicas_are_cores() == study.replicas_are_cores &&
         (run.precision.empty() || run.precision == study.precision) && may_have(run, study.work) &&
         has_runs(study, run->study);
}

std::vector<ExpectedRuns> own_plans(const Study& study, const std::vector<ExpectedRuns>& plans) {
  std::vector<ExpectedRuns> own;
  std::copy_if(plans.begin(), plans.end(), std::back_inserter(own),
               [&](const ExpectedRuns& plan) { return has_runs(study, plan.study); });
  return own;
}

bool is_of_any(const Run& run, const std::vector<Study>& studies) {
  return std::any_of(studies.begin(), studies.end(),
                     [&](const Study& study) { return belongs_to(run, study); });
}

// "train@3f9a12cd3f9a12cd" is shown as "train" unless there are several of that name.
class ProgramNames {
 public:
  void add(const Point& parameters) {
    if (const auto tag = parameters.text("program")) tags_[name_of_program(*tag)].insert(*tag);
  }
  // Empty: the tag stays.
  std::optional<std::string> shorten(const Point& parameters) const {
    const auto tag = parameters.text("program");
    if (!tag) return std::nullopt;
    const auto found = tags_.find(name_of_program(*tag));
    const bool is_lone = found == tags_.end() || found->second.size() == 1;
    return is_lone ? std::optional(name_of_program(*tag)) : std::nullopt;
  }

 private:
  std::map<std::string, std::set<std::string>> tags_;
};

void shorten_programs(std::vector<Run>& runs, std::vector<ExpectedRuns>& plans) {
  ProgramNames names;
  for (const Run& run : runs) names.add(run->parameters);
  for (Run& run : runs) {
    const auto name = names.shorten(run->parameters);
    if (name) own_record(run).parameters.set("program", *name);
  }
  for (ExpectedRuns& plan : plans) {
    for (Point& point : plan.points) {
      if (const auto name = names.shorten(point)) point.set("program", *name);
    }
  }
}

// The program that others are compared with: the first that a plan names, as its points follow the
// spec. Without a plan the first by name.
std::string find_reference(const std::vector<Row>& rows, const std::vector<ExpectedRuns>& plans) {
  std::set<std::string> programs;
  for (const Row& row : rows) {
    if (const auto program = row.first()->parameters.text("program")) programs.insert(*program);
  }
  if (programs.size() < 2) return "";
  for (const ExpectedRuns& plan : plans) {
    for (const Point& point : plan.points) {
      const std::string program = point.text("program").value_or("");
      if (programs.contains(program)) return program;
    }
  }
  return *programs.begin();
}

// Nothing before numbers, numbers by size and before words.
auto sort_key(const Study& study, const Run& run) {
  constexpr double kEnd = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, std::string>> axes;
  for (const std::string& axis : study.axes) {
    const auto text = run->parameters.text(axis);
    axes.emplace_back(text ? run->parameters.real(axis).value_or(kEnd) : -kEnd, text.value_or(""));
  }
  return std::tuple(std::string_view(run->kind), std::string_view(run.system),
                    std::string_view(run.backend), axes, run->layout.gpus,
                    run->layout.nodes.value_or(0), run->layout.cpus_per_task.value_or(0));
}

void sort_rows(const Study& study, std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return stands_before(study, a, b); });
}

// What belongs to no table is told with the first.
void add_notes(std::vector<Study>& studies, const StoreContent& content,
               const std::vector<Run>& lost, const std::vector<ExpectedRuns>& wanted,
               std::size_t superseded, std::size_t older_builds) {
  for (Study& study : studies) {
    const bool is_first = &study == &studies.front();
    const std::vector<Run> reported = chosen(lost, [&](const Run& run) {
      return belongs_to(run, study) || (is_first && !is_of_any(run, studies));
    });
    const StoreContent none;
    study.left_out = left_out(is_first ? content : none, reported);
    study.warnings = row_warnings(study);
    study.notes = row_notes(study);
    if (own_plans(study, wanted).empty()) add_note(study, open_ends_note(study));
    for (const std::string& note : left_out_notes(is_first ? content : none, reported)) {
      add_note(study, note);
    }
    if (!is_first) continue;
    if (superseded > 0) {
      add_note(
          study,
          fmt::format("{} of points that the study's plan now gives other parameters are left out",
                      counted(superseded, "run")));
    }
    if (older_builds > 0) {
      add_note(study, older_builds_note(older_builds) + "; --only build=... shows them");
    }
    add_note(study, no_table_note(wanted, studies));
  }
}

}  // namespace

Selection parsed_selection(const std::string& text, const std::string& option,
                           const std::string& example) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorKind::usage, "\"" + text + "\" is not KEY=VALUE", option,
                "write for example " + option + " " + example);
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::size_t count_sessions(const Row& row) {
  std::set<std::string> sessions;
  for (const Run& run : row.runs) sessions.insert(run->session);
  return sessions.size();
}

std::size_t units_in(const Row& row) {
  return row.pooled ? count_sessions(row) : row.runs.size();
}

bool has_runs(const Study& study, const std::string& name) {
  return std::any_of(study.rows.begin(), study.rows.end(), [&](const Row& row) {
    return std::any_of(row.runs.begin(), row.runs.end(), [&](const Run& run) {
      return run->kind == "measured" && run->study == name;
    });
  });
}

bool stands_before(const Study& study, const Row& a, const Row& b) {
  return sort_key(study, a.first()) < sort_key(study, b.first());
}

NewestRuns newest_runs(const StoreContent& content) {
  NewestRuns newest;
  for (const Record& record : content.records) {
    const bool is_run = !record->is_collective() && record->kind != "predicted";
    if (is_run && !record->control) newest.runs.push_back(make_run(record));
  }
  newest.older = drop_older_builds(newest.runs);
  return newest;
}

std::string older_builds_note(std::size_t older) {
  return fmt::format("without {} of earlier builds, which --new-build made again",
                     counted(older, "run"));
}

std::vector<Study> make_studies(const StoreContent& content,
                                const std::vector<Selection>& selections,
                                const std::vector<ExpectedRuns>& plans, Pooling pooling,
                                OlderBuilds older) {
  std::vector<Run> runs = selected_runs(content, selections);
  const std::vector<Run> controls = taken(runs, [](const Run& run) { return run->control; });
  const std::size_t superseded = drop_superseded(runs, plans);
  const std::size_t older_builds = older == OlderBuilds::left_out ? drop_older_builds(runs) : 0;
  std::vector<ExpectedRuns> wanted = selected(plans, selections);
  shorten_programs(runs, wanted);
  const std::vector<Run> unfinished =
      taken(runs, [](const Run& run) { return run->status != "completed"; });
  const std::vector<Run> lost = never_completed(unfinished, runs);
  if (runs.empty() && !lost.empty()) {
    const Run& last = lost.back();
    const std::string who = lost.size() == 1
                                ? "the only run"
                                : fmt::format("none of {} runs completed; this one", lost.size());
    const std::string why = last->reason.empty() ? "" : " (" + last->reason + ")";
    throw Error(ErrorKind::input, fmt::format("{} ended as {}{}", who, last->status, why),
                last.where, "see its log, and run the study again");
  }
  if (runs.empty()) {
    const auto why = left_out_notes(content, {});
    throw Error(ErrorKind::input, "no finished run found",
                why.empty() ? "the folders named" : why.front(),
                "run the study first, name its folder, or name files of train --record one by one");
  }
  std::vector<Study> studies;
  for (auto& [key, members] : grouped(std::move(runs))) {
    Study& study = studies.emplace_back();
    study.workload = key.workload;
    study.precision = key.precision;
    study.unit = {key.unit};
    study.scaling = key.scaling;
    study.work = key.work;
    study.chosen = format_selections(selections);
    study.replicas_are_cores = members.front().replicas_are_cores();
    study.rows = make_rows(std::move(members));
    const bool pooled = should_pool(study.rows, pooling);
    for (Row& row : study.rows) row.pooled = pooled;
    count_lost(study.rows, lost);
    study.goal = find_goal(study.rows);
    add_controls(study.rows, controls);
    const std::vector<Run> like =
        chosen(unfinished, [&](const Run& run) { return belongs_to(run, study); });
    const std::vector<ExpectedRuns> own = own_plans(study, wanted);
    study.axes = find_axes(study.rows, like, own);
    sort_rows(study, study.rows);
    study.reference = find_reference(study.rows, own);
    compare_work(study.rows);
    study.gaps = find_gaps(study, like, own);
    sort_rows(study, study.gaps);
  }
  add_notes(studies, content, lost, wanted, superseded, older_builds);
  return studies;
}

}  // namespace paceline

#include "analysis/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "analysis/statistics/statistics.h"
#include "analysis/study/labels.h"
#include "analysis/study/rounds.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

void add_note(Study& study, const std::string& note) {
  if (!note.empty()) study.notes.push_back(note);
}

std::string format_selections(const std::vector<Selection>& selections) {
  const auto text = [](const Selection& each) { return each.key + "=" + join(each.values, ","); };
  return join(mapped(selections, text), ", ");
}

bool is_parameter(const std::string& key) {
  return find_parameter(key) != nullptr;
}

// Planned points that match. Plans have no session and no build, so selecting one drops the plan.
std::vector<ExpectedRuns> selected(std::vector<ExpectedRuns> plans,
                                   const std::vector<Selection>& selections) {
  for (const Selection& selection : selections) {
    const std::string& key = selection.key;
    for (ExpectedRuns& plan : plans) {
      const bool all = (key == "kind" && selection.allows("measured")) ||
                       (key == "study" && selection.allows(plan.study)) ||
                       (key == "workload" && selection.allows(plan.workload));
      if (all) continue;
      std::erase_if(plan.points, [&](const Point& point) {
        return !is_parameter(key) || (point.find(key) && !selection.allows(point.text(key)));
      });
    }
  }
  std::erase_if(plans, [](const ExpectedRuns& plan) { return plan.points.empty(); });
  return plans;
}

std::vector<Row> make_rows(std::vector<Run> runs, const MatchRule& rule) {
  return mapped(group_points(std::move(runs), rule), [](EvidencePoint& point) {
    return Row{{std::move(point)}, false, {}, ""};
  });
}

void add_controls(std::vector<Row>& rows, const std::vector<Run>& controls, const MatchRule& rule) {
  if (controls.empty()) return;
  std::unordered_map<PointKey, Row*> by_key;
  for (Row& row : rows) by_key.emplace(row.first().key(rule), &row);
  for (const Run& control : controls) {
    const auto row = by_key.find(control.key(rule));
    if (row != by_key.end()) row->second->controls.push_back(control);
  }
}

std::string find_goal(const std::vector<Row>& rows) {
  const std::string& goal = rows.front().first().goal;
  const bool shared = std::ranges::all_of(rows, [&](const Row& row) {
    return std::ranges::all_of(row.runs, [&](const Run& run) { return run.goal == goal; });
  });
  return shared ? goal : "";
}

// What was asked of a run that did not complete, and others of its size do not have.
void add_asked(const std::vector<Row>& rows, const std::vector<Run>& unfinished,
               std::set<std::string>& differing) {
  std::map<int, std::map<std::string, std::set<std::string>>> asked, had;
  const MatchRule of_row = MatchRule::row();
  const auto add = [&](auto& values, const Run& run) {
    for (const auto& [name, value] : run->parameters.values()) {
      if (of_row.counts(name)) values[run->layout.gpus][name].insert(to_text(value));
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
  MatchRule layout = MatchRule::row();
  layout.only.emplace();
  std::unordered_map<PointKey, std::vector<const Point*>> layouts;
  for (const Row& row : rows) {
    layouts[row.first().key(layout)].push_back(&row.first()->parameters);
  }
  std::set<std::string> differing;
  for (const auto& [key, points] : layouts) {
    for (std::string& name : varying_parameters(points, MatchRule::row())) {
      differing.insert(std::move(name));
    }
  }
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
  std::ranges::copy_if(plans, std::back_inserter(own),
                       [&](const ExpectedRuns& plan) { return has_runs(study, plan.study); });
  return own;
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

void shorten_programs(Evidence& evidence, std::vector<ExpectedRuns>& plans) {
  ProgramNames names;
  for (const Run& run : evidence.runs) names.add(run->parameters);
  for (std::vector<Run>* runs : {&evidence.runs, &evidence.controls}) {
    for (Run& run : *runs) {
      const auto name = names.shorten(run->parameters);
      if (name) own_record(run).parameters.set("program", *name);
    }
  }
  for (ExpectedRuns& plan : plans) {
    for (Point& point : plan.points) {
      if (const auto name = names.shorten(point)) point.set("program", *name);
    }
  }
}

// What a study says of its results, and not of its runs, holds for those that were made before.
void apply_plans(std::vector<Run>& runs, const std::vector<ExpectedRuns>& plans) {
  for (const ExpectedRuns& plan : plans) {
    if (plan.points.empty() || plan.workload != kCommandWorkload) continue;
    for (const Parameter& parameter : parameters()) {
      if (parameter.role != Role::none || parameter.need != Requirement::own_program) continue;
      const Value* value = plan.points.front().find(parameter.name);
      for (Run& run : runs) {
        const Value* known = run->parameters.find(parameter.name);
        const bool is_known = known && value ? *known == *value : known == value;
        if (run->study != plan.study || is_known) continue;
        Point& point = own_record(run).parameters;
        value ? point.set(parameter.name, *value) : void(point.erase(parameter.name));
      }
    }
  }
}

// Runs of which each replica does the same work, and that state only times: replicas a second.
void add_growing_rates(Study& study, std::vector<Run>& runs) {
  const bool has_rates =
      std::ranges::any_of(runs, [](const Run& run) { return run.samples_per_second.has_value(); });
  if (study.scaling != Scaling::weak || has_rates) return;
  study.unit = {"work/s", "more"};
  for (Run& run : runs) run.samples_per_second = run->layout.gpus / *run.fit_seconds();
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
  using Key = decltype(sort_key(study, rows.front().first()));
  std::vector<std::pair<Key, std::size_t>> order;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    order.emplace_back(sort_key(study, rows[i].first()), i);
  }
  std::ranges::sort(order);
  std::vector<Row> sorted;
  for (const auto& [key, i] : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

// What belongs to no table is told with the first.
void add_notes(std::vector<Study>& studies, const StoreContent& content,
               const std::vector<Run>& lost, const std::vector<ExpectedRuns>& wanted,
               const Evidence& evidence) {
  for (Study& study : studies) {
    const bool is_first = &study == &studies.front();
    const std::vector<Run> reported = chosen(lost, [&](const Run& run) {
      const auto has_it = [&](const Study& each) { return belongs_to(run, each); };
      return has_it(study) || (is_first && std::ranges::none_of(studies, has_it));
    });
    const StoreContent none;
    study.left_out = left_out(is_first ? content : none, reported);
    add_row_warnings(study);
    study.notes = row_notes(study);
    if (study.scaling == Scaling::same_work && stated_work(study.rows.front().first()).empty()) {
      add_note(
          study,
          "same work assumed, as the runs state only times; if each replica does the same work, "
          "say \"work\": \"grows\" (in a spec under \"fixed\", on import by --set work=grows)");
    }
    if (study.scaling == Scaling::unknown && study.unit.name == "steps") {
      add_note(study,
               "state batch_per_replica, or \"work\": \"grows\" (in a spec under \"fixed\", on "
               "import by --set), if a step holds a batch for each replica: rates are in steps, "
               "and speed-ups would be higher");
    }
    if (own_plans(study, wanted).empty()) add_note(study, open_ends_note(study));
    for (const std::string& note : left_out_notes(is_first ? content : none, reported)) {
      add_note(study, note);
    }
    if (!is_first) continue;
    if (evidence.superseded > 0) {
      add_note(
          study,
          fmt::format("left out: {} of points whose parameters have changed in the study's plan",
                      counted(evidence.superseded, "run")));
    }
    if (evidence.older_builds > 0) {
      add_note(study, older_builds_note(evidence.older_builds) + "; --only build=... shows them");
    }
    add_note(study, no_table_note(wanted, studies));
  }
}

}  // namespace

std::size_t count_sessions(const Row& row) {
  return distinct(row.runs, [](const Run& run) { return run->session; }).size();
}

std::size_t units_in(const Row& row) {
  return row.pooled ? count_sessions(row) : row.runs.size();
}

std::size_t fewest_units(const Row& row) {
  return row.pooled && row.runs.size() >= kFewestRuns ? kFewestPooledSessions : kFewestRuns;
}

bool knows_sessions(const Row& row) {
  return std::ranges::all_of(
      row.runs, [](const Run& run) { return run->kind == "measured" && !run->session.empty(); });
}

std::vector<double> run_weights(const Row& row) {
  std::map<std::string, double> counts;
  for (const Run& run : row.runs) ++counts[run->session];
  return mapped(row.runs,
                [&](const Run& run) { return row.pooled ? 1 / counts[run->session] : 1; });
}

Row runs_in_common(const Row& row, const Row& other) {
  Row common = row;
  if (!knows_sessions(row) || !knows_sessions(other)) return common;
  const auto sessions = distinct(other.runs, [](const Run& run) { return run->session; });
  std::erase_if(common.runs, [&](const Run& run) { return !sessions.contains(run->session); });
  return common;
}

std::size_t units_in_common(const Row& a, const Row& b) {
  return std::min(units_in(runs_in_common(a, b)), units_in(runs_in_common(b, a)));
}

bool has_runs(const Study& study, const std::string& name) {
  return std::ranges::any_of(study.rows, [&](const Row& row) {
    return std::ranges::any_of(
        row.runs, [&](const Run& run) { return run->kind == "measured" && run->study == name; });
  });
}

bool stands_before(const Study& study, const Row& a, const Row& b) {
  return sort_key(study, a.first()) < sort_key(study, b.first());
}

std::vector<Study> make_studies(const StoreContent& content,
                                const std::vector<Selection>& selections,
                                const std::vector<ExpectedRuns>& plans, Pooling pooling,
                                const EvidencePolicy& policy) {
  Evidence evidence = collect(content, policy, selections, plans);
  std::vector<Run>& runs = evidence.runs;
  std::vector<ExpectedRuns> wanted = selected(plans, selections);
  apply_plans(runs, plans);
  shorten_programs(evidence, wanted);
  const std::vector<Run> unfinished = taken(runs, [](const Run& run) { return run.has_failed(); });
  const std::vector<Run> lost = chosen(unfinished, [](const Run& run) { return run.is_lost; });
  std::erase_if(runs, [](const Run& run) { return run.effect == Effect::excluded; });
  if (runs.empty() && !lost.empty()) {
    const Run& last = lost.back();
    const std::string who = lost.size() == 1
                                ? "the only run"
                                : fmt::format("none of {} runs completed; this one", lost.size());
    const std::string why = last->reason.empty() ? "" : " (" + last->reason + ")";
    throw input_error(fmt::format("{} ended as {}{}", who, last->status, why), last.where,
                      "see its log, and run the study again");
  }
  if (runs.empty()) {
    const auto why = left_out_notes(content, {});
    throw input_error(
        "no finished run found", why.empty() ? "the folders named" : why.front(),
        "run the study first, name its folder, or name files of train --record one by one");
  }
  std::vector<Study> studies;
  for (auto& [key, members] : grouped(std::move(runs), pooling == Pooling::always)) {
    Study& study = studies.emplace_back();
    study.workload = key.workload;
    study.precision = key.precision;
    study.unit = find_unit(members.front());
    study.scaling = key.scaling;
    study.work = key.work;
    if (!key.studies.empty() && (key.work.empty() || key.work.front().first != "study")) {
      const bool several = key.studies.find(", ") != std::string::npos;
      study.work.emplace(study.work.begin(), several ? "studies" : "study", key.studies);
    }
    study.chosen = format_selections(selections);
    study.replicas_are_cores = members.front().replicas_are_cores();
    add_growing_rates(study, members);
    study.rows = make_rows(std::move(members), policy.point);
    const bool pooled = should_pool(study.rows, pooling);
    for (Row& row : study.rows) row.pooled = pooled;
    add_unfinished(study.rows, unfinished);
    study.goal = find_goal(study.rows);
    add_controls(study.rows, evidence.controls, policy.point);
    const std::vector<Run> like =
        chosen(unfinished, [&](const Run& run) { return belongs_to(run, study); });
    const std::vector<ExpectedRuns> own = own_plans(study, wanted);
    study.axes = find_axes(study.rows, like, own);
    sort_rows(study, study.rows);
    study.reference = find_reference(study.rows, own);
    compare_work(study.rows);
    if (!policy.keeps_older_builds) mark_older_programs(study.rows, own);
    study.gaps = find_gaps(study, like, own);
    sort_rows(study, study.gaps);
    distinguish_layouts(study);
  }
  add_notes(studies, content, lost, wanted, evidence);
  return studies;
}

}  // namespace paceline

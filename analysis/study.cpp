#include "analysis/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/gaps.h"
#include "analysis/labels.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// Of these a table has columns of its own, or they are the same in all of it.
const std::set<std::string, std::less<>> kOwnColumns = {
    "gpus", "nodes", "cpus_per_task", "cpus_per_replica", "backend", "precision", "seed"};

std::optional<std::string> field(const Run& run, const std::string& key) {
  if (key == "kind") return run.kind;
  if (key == "study") return run.study;
  if (key == "session") return run.session;
  if (key == "build") return run.build;
  if (key == "system") return run.system;
  if (key == "workload") return run.workload;
  if (key == "precision") return run.precision;
  return run.parameters.text(key);
}

void check_key(const std::string& key) {
  std::vector<std::string> known = {"kind", "study", "session", "build", "system", "workload"};
  for (const Parameter& parameter : parameters()) known.emplace_back(parameter.name);
  if (std::find(known.begin(), known.end(), key) != known.end()) return;
  throw Error(ErrorKind::usage, fmt::format("records have no \"{}\"", key), "--only",
              suggestion(key, known));
}

std::vector<Run> selected_runs(const StoreContent& content,
                               const std::vector<Selection>& selections) {
  for (const Selection& selection : selections) check_key(selection.key);
  std::vector<Run> runs;
  std::vector<std::set<std::string>> seen(selections.size());
  for (const Record& record : content.records) {
    Run run = run_of(record);
    bool wanted = true;
    for (std::size_t i = 0; i < selections.size(); ++i) {
      const auto value = field(run, selections[i].key);
      if (value) seen[i].insert(*value);
      wanted = wanted && value == selections[i].value;
    }
    if (wanted) runs.push_back(std::move(run));
  }
  for (std::size_t i = 0; i < selections.size(); ++i) {
    if (seen[i].contains(selections[i].value)) continue;
    throw Error(ErrorKind::usage,
                fmt::format("no record has {} \"{}\"", selections[i].key, selections[i].value),
                "--only", "known: " + join({seen[i].begin(), seen[i].end()}, ", "));
  }
  return runs;
}

// Everything but layout, backend and seed.
std::string other_parameters(const Run& run) {
  std::string text;
  for (const auto& [name, value] : run.parameters.values()) {
    if (kOwnColumns.contains(name) || !find_parameter(name)->identity) continue;
    text += name + '=' + to_text(value) + ',';
  }
  return text;
}

std::string layout_key(const Run& run) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", run.kind, run.system, run.backend, run.gpus,
                     run.nodes.value_or(0), run.ntasks.value_or(0), run.cpus_per_task.value_or(0));
}

std::string row_key(const Run& run) {
  return layout_key(run) + '|' + other_parameters(run);
}

std::string text_of(const std::vector<Selection>& selections) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : selections) parts.push_back(key + "=" + value);
  return join(parts, ", ");
}

bool is_parameter(const std::string& key) {
  return find_parameter(key) != nullptr;
}

// What of the plans the selections leave. Which session or build would have run a point, nobody
// knows: such a selection leaves no plan.
std::vector<WantedRuns> selected(std::vector<WantedRuns> plans,
                                 const std::vector<Selection>& selections) {
  for (const Selection& selection : selections) {
    const std::string &key = selection.key, &value = selection.value;
    for (WantedRuns& plan : plans) {
      const bool all = (key == "kind" && value == "measured") ||
                       (key == "study" && value == plan.study) ||
                       (key == "workload" && value == plan.workload);
      if (all) continue;
      std::erase_if(plan.points, [&](const Point& point) {
        return !is_parameter(key) || point.text(key).value_or(value) != value;
      });
    }
  }
  std::erase_if(plans, [](const WantedRuns& plan) { return plan.points.empty(); });
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
  for (const Run& control : controls) {
    if (control.tainted() || control.status != "completed") continue;
    for (Row& row : rows) {
      if (row_key(row.first()) == row_key(control)) row.controls.push_back(control);
    }
  }
}

bool may_be_axis(const std::string& name) {
  return !kOwnColumns.contains(name) && find_parameter(name)->identity;
}

// What differs between runs of one layout; not to have it is a value, too.
void add_differing(const std::vector<const Run*>& runs, std::set<std::string>& differing) {
  std::map<std::string, std::map<std::string, std::size_t>> values;
  for (const Run* run : runs) {
    for (const auto& [name, value] : run->parameters.values()) {
      if (may_be_axis(name)) ++values[name][to_text(value)];
    }
  }
  for (const auto& [name, counts] : values) {
    if (counts.size() > 1 || counts.begin()->second < runs.size()) differing.insert(name);
  }
}

// A parameter is an axis of its own where rows of one layout differ in it, or what was asked of
// a run that did not complete differs from what runs of its size have.
std::vector<std::string> axes_of(const std::vector<Row>& rows, const std::vector<Run>& unfinished) {
  std::map<std::string, std::vector<const Run*>> layouts;
  for (const Row& row : rows) layouts[layout_key(row.first())].push_back(&row.first());
  std::set<std::string> differing;
  for (const auto& [layout, runs] : layouts) add_differing(runs, differing);
  for (const Run& run : unfinished) {
    for (const auto& [name, value] : run.parameters.values()) {
      if (!may_be_axis(name) || differing.contains(name)) continue;
      const auto differs = [&, &key = name, &own = value](const Run& other) {
        const auto text = other.parameters.text(key);
        return other.gpus == run.gpus && text && *text != to_text(own);
      };
      if (std::any_of(unfinished.begin(), unfinished.end(), differs) ||
          std::any_of(rows.begin(), rows.end(),
                      [&](const Row& row) { return differs(row.first()); })) {
        differing.insert(name);
      }
    }
  }
  std::vector<std::string> axes;
  for (const Parameter& parameter : parameters()) {
    if (differing.contains(std::string(parameter.name))) axes.emplace_back(parameter.name);
  }
  return axes;
}

// Of a run that did not complete, whose precision may be the program's choice.
bool is_of(const Run& run, const Study& study) {
  return run.workload == study.workload &&
         (run.precision.empty() || run.precision == study.precision);
}

// "gpus=2,decay_epochs=30,60" as names and values.
std::vector<std::pair<std::string, std::string>> named_values(const std::string& point) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const std::string& piece : split(point, ',')) {
    const auto equals = piece.find('=');
    if (equals != std::string::npos) {
      values.emplace_back(piece.substr(0, equals), piece.substr(equals + 1));
    } else if (!values.empty()) {
      values.back().second += ',' + piece;
    }
  }
  return values;
}

enum class Planned { no, otherwise, yes };

// Whether a study's plan names the run's point, and with the run's parameters.
Planned planned(const Run& run, const std::vector<WantedRuns>& plans) {
  const auto axes = named_values(run.point);
  Planned result = Planned::no;
  for (const WantedRuns& plan : plans) {
    if (plan.study != run.study || plan.workload != run.workload) continue;
    for (const Point& point : plan.points) {
      const bool same = std::all_of(axes.begin(), axes.end(), [&](const auto& axis) {
        return point.text(axis.first) == axis.second;
      });
      if (!same) continue;
      const auto& given = point.values();
      const bool done = std::all_of(given.begin(), given.end(), [&](const auto& parameter) {
        return kOwnColumns.contains(parameter.first) ||
               !find_parameter(parameter.first)->identity ||
               run.parameters.text(parameter.first) == to_text(parameter.second);
      });
      if (done) return Planned::yes;
      result = Planned::otherwise;
    }
  }
  return result;
}

// Runs of before a spec was edited, of points that have runs of what it says now. How many.
std::size_t leave_out_superseded(std::vector<Run>& runs, const std::vector<WantedRuns>& plans) {
  if (plans.empty()) return 0;
  std::set<std::pair<std::string, std::string>> done;
  std::vector<Planned> of_run;
  for (const Run& run : runs) {
    of_run.push_back(planned(run, plans));
    if (of_run.back() == Planned::yes) done.emplace(run.study, run.point);
  }
  std::size_t at = 0;
  return std::erase_if(runs, [&](const Run& run) {
    return of_run[at++] == Planned::otherwise && done.contains({run.study, run.point});
  });
}

auto sort_key(const Study& study, const Run& run) {
  std::string axes;
  for (const std::string& axis : study.axes) {
    axes += run.parameters.text(axis).value_or("") + ',';
  }
  return std::tuple(std::string_view(run.kind), std::string_view(run.system),
                    std::string_view(run.backend), axes, run.gpus, run.nodes.value_or(0),
                    run.cpus_per_task.value_or(0));
}

void sort_rows(const Study& study, std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return stands_before(study, a, b); });
}

using Group = std::tuple<std::string, std::string, Scaling>;  // workload, precision, type

// Runs of one size have no type of their own: they join the one type that their like have.
void settle_one_sizes(std::map<Group, std::vector<Run>>& groups) {
  for (auto it = groups.begin(); it != groups.end();) {
    const auto& [workload, precision, scaling] = it->first;
    std::vector<Group> hosts;
    for (const auto& [group, runs] : groups) {
      if (std::get<0>(group) == workload && std::get<1>(group) == precision &&
          std::get<2>(group) != Scaling::one_size) {
        hosts.push_back(group);
      }
    }
    if (scaling != Scaling::one_size || hosts.size() != 1) {
      ++it;
      continue;
    }
    auto& host = groups[hosts.front()];
    std::move(it->second.begin(), it->second.end(), std::back_inserter(host));
    it = groups.erase(it);
  }
}

std::map<Group, std::vector<Run>> grouped(std::vector<Run> runs) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<Run>>
      systems;
  for (Run& run : runs) {
    auto& system = systems[{run.workload, run.precision, run.kind, run.system}];
    system.push_back(std::move(run));
  }
  std::map<Group, std::vector<Run>> groups;
  for (auto& [key, members] : systems) {
    std::vector<const Run*> pointers;
    for (const Run& run : members) pointers.push_back(&run);
    auto& group = groups[{std::get<0>(key), std::get<1>(key), scaling_of(pointers)}];
    std::move(members.begin(), members.end(), std::back_inserter(group));
  }
  settle_one_sizes(groups);
  return groups;
}

void refuse_mixture(const std::map<Group, std::vector<Run>>& groups) {
  const auto all_published = [](const auto& group) {
    return std::all_of(group.second.begin(), group.second.end(),
                       [](const Run& run) { return run.kind == "published"; });
  };
  if (groups.size() < 2 || std::all_of(groups.begin(), groups.end(), all_published)) return;
  const auto& [a, runs_a] = *groups.begin();
  const auto& [b, runs_b] = *std::next(groups.begin());
  const std::string where = runs_a.front().where + " and " + runs_b.front().where;
  const auto refuse = [&](const char* what, std::string_view left, std::string_view right,
                          const char* key) {
    const auto shown = [](std::string_view text) { return text.empty() ? "not stated" : text; };
    throw Error(ErrorKind::usage,
                fmt::format("{} are mixed: {} and {}", what, shown(left), shown(right)), where,
                key ? fmt::format("choose one with --only {}={}", key, left.empty() ? right : left)
                    : "report them apart");
  };
  if (std::get<0>(a) != std::get<0>(b)) {
    refuse("workloads", std::get<0>(a), std::get<0>(b), "workload");
  }
  if (std::get<1>(a) != std::get<1>(b)) {
    refuse("precisions", std::get<1>(a), std::get<1>(b), "precision");
  }
  refuse("scaling types", name_of(std::get<2>(a)), name_of(std::get<2>(b)), nullptr);
}

}  // namespace

Selection parsed_selection(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorKind::usage, "\"" + text + "\" is not KEY=VALUE", "--only",
                "write for example --only backend=mpi");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

bool stands_before(const Study& study, const Row& a, const Row& b) {
  return sort_key(study, a.first()) < sort_key(study, b.first());
}

std::vector<Study> make_studies(const StoreContent& content,
                                const std::vector<Selection>& selections,
                                const std::vector<WantedRuns>& plans) {
  std::vector<Run> runs = selected_runs(content, selections);
  const auto results =
      std::stable_partition(runs.begin(), runs.end(), [](const Run& run) { return !run.control; });
  const std::vector<Run> controls(std::make_move_iterator(results),
                                  std::make_move_iterator(runs.end()));
  runs.erase(results, runs.end());
  std::vector<std::string> notes = record_notes(content, runs);
  const std::size_t superseded = leave_out_superseded(runs, plans);
  if (superseded > 0) {
    notes.push_back(fmt::format(
        "{} run{} of points that the study's plan now gives other parameters are left out",
        superseded, superseded == 1 ? "" : "s"));
  }
  const auto ended = std::stable_partition(
      runs.begin(), runs.end(), [](const Run& run) { return run.status == "completed"; });
  const std::vector<Run> unfinished(std::make_move_iterator(ended),
                                    std::make_move_iterator(runs.end()));
  runs.erase(ended, runs.end());
  if (runs.empty()) {
    throw Error(ErrorKind::input, "no completed record",
                notes.empty() ? "the folders named" : notes.front(),
                "run the study first, or name another folder");
  }
  auto groups = grouped(std::move(runs));
  refuse_mixture(groups);
  const std::vector<WantedRuns> wanted = selected(plans, selections);
  std::vector<Study> studies;
  for (auto& [group, members] : groups) {
    Study study;
    std::tie(study.workload, study.precision, study.scaling) = group;
    study.chosen = text_of(selections);
    study.replicas_are_cores = members.front().replicas_are_cores;
    study.rows = make_rows(std::move(members));
    add_controls(study.rows, controls);
    std::vector<Run> like;
    std::copy_if(unfinished.begin(), unfinished.end(), std::back_inserter(like),
                 [&](const Run& run) { return is_of(run, study); });
    study.axes = axes_of(study.rows, like);
    sort_rows(study, study.rows);
    study.gaps = find_gaps(study, like, wanted);
    sort_rows(study, study.gaps);
    study.notes = row_notes(study);
    if (wanted.empty()) {
      if (std::string note = open_ends_note(study); !note.empty()) study.notes.push_back(note);
    }
    study.notes.insert(study.notes.end(), notes.begin(), notes.end());
    studies.push_back(std::move(study));
  }
  return studies;
}

}  // namespace paceline

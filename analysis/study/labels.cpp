#include "analysis/study/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "analysis/evidence/covariates.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostLines = 5;

// Long lists say what they leave out.
std::vector<std::string> cut(std::vector<std::string> lines, const char* rest) {
  if (lines.size() <= kMostLines) return lines;
  const std::size_t more = lines.size() - kMostLines;
  lines.resize(kMostLines);
  lines.push_back(fmt::format("{} more {}", more, rest));
  return lines;
}

std::string point_label(const Run& run) {
  return fmt::format("{}|{}|{}|{}", run->kind, run->study, run->workload,
                     run->point.empty() ? run->parameters.text() : run->point);
}

std::string how_it_ended(const Run& run) {
  return fmt::format("ended as {}{}", run->status, run->reason.empty() ? "" : ": " + run->reason);
}

template <typename Field>
std::map<std::string, std::size_t> count_rows(const Study& study, Field field) {
  std::map<std::string, std::size_t> counts;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) {
      if (const std::string value = field(run); !value.empty()) ++counts[value];
    }
  }
  return counts;
}

// Parameters that change from layout to layout, which the columns do not show.
std::vector<std::string> hidden_differences(const Study& study) {
  MatchRule rule = MatchRule::row();
  rule.without.insert(rule.without.end(), {Role::work, Role::threads});
  rule.without_sized = true;
  rule.except.insert(rule.except.end(), study.axes.begin(), study.axes.end());
  std::map<std::string, std::set<std::string>> values;
  for (const Row& row : study.rows) {
    for (const auto& [name, value] : row.first()->parameters.values()) {
      if (rule.counts(name)) values[name].insert(to_text(value));
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, differing] : values) {
    if (differing.size() > 1) names.push_back(name);
  }
  return names;
}

bool sets_apart(const Study& study, std::string_view parameter) {
  return std::ranges::any_of(study.work, [&](const auto& part) { return part.first == parameter; });
}

// What others took of the machine in the runs of a table.
struct Load {
  std::size_t measured = 0, busy = 0, not_recorded = 0;
  std::string example;  // of what kept it busy
  std::optional<double>
      share;  // others' largest, of runs that are not busy; empty: not known of all
};

Load count_load(const Study& study) {
  Load load;
  bool known = true;
  double most = 0;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) {
      if (run->kind != "measured") continue;
      ++load.measured;
      const LoadFacts& facts = run->provenance.machine_load;
      if (!facts.busy) ++load.not_recorded;
      if (facts.busy && !*facts.busy) {
        const auto share =
            facts.worst_other_cpu_share ? facts.worst_other_cpu_share : facts.other_cpu_share;
        known = known && share;
        most = std::max(most, share.value_or(0));
      }
      if (!run.is_busy()) continue;
      ++load.busy;
      if (load.example.empty()) load.example = facts.why;
    }
  }
  if (known) load.share = most;
  if (load.example.empty()) load.example = "for reasons that were not recorded";
  return load;
}

// How much of the CPUs other processes took at most.
std::string others_text(const Load& load) {
  constexpr double kSeen = 0.0005;
  if (!load.share) return "other processes used less than 5 % of the CPUs";
  if (*load.share < kSeen) return "other processes used none of the CPUs";
  return fmt::format("other processes used up to {:.1f} % of the CPUs", 100 * *load.share);
}

// Runs of one session share what the machine was like then.
std::string session_note(const Study& study) {
  std::size_t most_sessions = 0, most_runs = 0;
  std::set<std::string> sessions;
  bool pooled = false;
  for (const Row& row : study.rows) {
    if (row.first()->kind != "measured") continue;
    most_sessions = std::max(most_sessions, count_sessions(row));
    most_runs = std::max(most_runs, row.runs.size());
    pooled = pooled || row.pooled;
    for (const Run& run : row.runs) sessions.insert(run->session);
  }
  if (pooled) {
    return fmt::format(
        "intervals cover how sessions differ, up to {} a row (--no-pool takes runs as the unit)",
        most_sessions);
  }
  if (sessions.contains("") || most_runs < 2) return "";
  if (sessions.size() == 1) {
    return "intervals take rounds as independent, and do not cover how sessions differ";
  }
  if (most_sessions == 1) {
    return fmt::format(
        "run all rows in one sweep: each is of one of {} sessions, and intervals do not cover how "
        "these differ",
        sessions.size());
  }
  return fmt::format(
      "intervals do not cover how sessions differ, of which rows have up to {}; with --pool they "
      "do",
      most_sessions);
}

// A lone program's name says more than "command".
std::string program_of_all(const Study& study) {
  const auto first = study.rows.front().first()->parameters.text("program");
  const bool all = std::ranges::all_of(
      study.rows, [&](const Row& row) { return row.first()->parameters.text("program") == first; });
  return all ? first.value_or("") : "";
}

// What was trained. Programs of the user's own stand under the name of their study.
std::string trained_name(const Study& study) {
  if (std::string program = program_of_all(study); !program.empty()) return program;
  const std::set<std::string> names = study_names(study);
  if (study.workload != kCommandWorkload || names.empty()) return study.workload;
  constexpr std::size_t kMost = 2;
  return join_first(kMost, {names.begin(), names.end()});
}

constexpr std::size_t kReplicas = 3;  // the part that is always told

// " in 2 of 5 runs"; empty: in all.
std::string in_runs(std::size_t count, const Row& row) {
  return count == row.runs.size() ? "" : fmt::format(" in {} of {} runs", count, row.runs.size());
}

std::vector<std::string> name_parts(const Study& study, const Row& row) {
  const Run& run = row.first();
  std::vector<std::string> parts = {run->kind == "measured" ? "" : run->kind, run.system,
                                    run.backend, replicas_text(study, row),
                                    cpus_of_run(run, "each")};
  for (const std::string& axis : study.axes) {
    parts.push_back(fmt::format("{} {}", axis, run->parameters.text(axis).value_or("-")));
  }
  return parts;
}

}  // namespace

std::string cpus_of_run(const Run& run, std::string_view of) {
  if (run.replicas_are_cores() && run.cpus_per_replica()) {
    return fmt::format("{} {}", counted(*run.cpus_per_replica(), "CPU"), of);
  }
  return run->layout.cpus_per_task ? fmt::format("cpus-per-task {}", *run->layout.cpus_per_task)
                                   : "";
}

std::vector<std::string> ignored_records(const StoreContent& content) {
  return mapped(content.rejected,
                [](const Rejected& rejected) { return "ignored record: " + rejected.reason; });
}

std::vector<std::string> left_out(const StoreContent& content, const std::vector<Run>& unfinished) {
  std::vector<std::string> lines = ignored_records(content);
  for (const Run& run : unfinished) {
    lines.push_back(fmt::format("a run that {} ({})", how_it_ended(run), run.where));
  }
  return lines;
}

std::vector<std::string> left_out_notes(const StoreContent& content,
                                        const std::vector<Run>& unfinished) {
  std::vector<std::string> notes = cut(ignored_records(content), "records were ignored");
  std::vector<std::pair<std::string, std::vector<const Run*>>> endings;
  for (const Run& run : unfinished) {
    const std::string end = how_it_ended(run);
    auto it =
        std::ranges::find_if(endings, [&](const auto& ending) { return ending.first == end; });
    if (it == endings.end()) it = endings.insert(endings.end(), {end, {}});
    it->second.push_back(&run);
  }
  std::vector<std::string> lines;
  for (const auto& [end, runs] : endings) {
    const auto points = distinct(runs, [](const Run* run) { return point_label(*run); });
    const std::string of = points.size() > 1 ? fmt::format(" of {} points", points.size()) : "";
    lines.push_back(runs.size() == 1
                        ? fmt::format("not in the table: a run that {} ({})", end, runs[0]->where)
                        : fmt::format("not in the table: {} runs{} that {} ({} and {} more)",
                                      runs.size(), of, end, runs[0]->where, runs.size() - 1));
  }
  lines = cut(std::move(lines), "reasons why runs did not complete");
  notes.insert(notes.end(), lines.begin(), lines.end());
  return notes;
}

void add_unfinished(std::vector<Row>& rows, const std::vector<Run>& unfinished) {
  if (unfinished.empty()) return;
  std::unordered_map<std::string, Row*> by_point;
  for (Row& row : rows) {
    for (const Run& run : row.runs) by_point.emplace(point_label(run), &row);
  }
  for (const Run& run : unfinished) {
    const auto row = by_point.find(point_label(run));
    if (row == by_point.end()) continue;
    row->second->failed.push_back(run);
    if (run.is_lost && row->second->lost++ == 0) row->second->why_lost = run->reason;
  }
}

std::string load_note(const Study& study) {
  const Load load = count_load(study);
  const std::size_t recorded = load.measured - load.not_recorded, free = recorded - load.busy;
  if (load.measured == 0) return "";
  if (recorded == 0) return "the load of other processes is not recorded";
  std::string note;
  if (free > 0) {
    note = others_text(load) + " in " +
           (free == load.measured ? "all runs"
                                  : fmt::format("{} of {}", free, counted(recorded, "run")));
  }
  if (load.not_recorded == 0) return note;
  return note + (note.empty() ? "" : "; ") +
         fmt::format("not recorded for {}", counted(load.not_recorded, "run"));
}

// "slow in the screen before the run: cn12 (8.0 % slower in sums of 4 MB), 3 of 24 runs"
void add_screened(const Study& study, std::vector<std::string>& warnings) {
  std::map<std::string, std::pair<std::string, std::size_t>> slow;  // by part
  std::size_t screened = 0;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) {
      const auto& facts = run->provenance.screened;
      if (!facts) continue;
      ++screened;
      for (const std::string& part : each_once(facts->slow)) ++slow[part].second;
      // Of each part the largest is first.
      for (std::size_t i = 0; i < std::min(facts->slow.size(), facts->sizes.size()); ++i) {
        std::string& size = slow[facts->slow[i]].first;
        if (size.empty()) size = facts->sizes[i];
      }
    }
  }
  for (const auto& [part, known] : slow) {
    warnings.push_back(fmt::format("slow in the screen before the run: {} ({}), {} of {}", part,
                                   known.first, known.second, counted(screened, "run")));
  }
}

void add_row_warnings(Study& study) {
  const auto machines = count_rows(
      study, [](const Run& run) { return run->kind == "measured" ? run.system : std::string(); });
  std::vector<std::string>& warnings = study.warnings;
  warnings.clear();
  if (machines.size() > 1) {
    warnings.push_back(fmt::format(
        "runs of {} machines are mixed: {}; no speed-up is given across them",
        machines.size() == 2 ? "two" : std::to_string(machines.size()), counts_text(machines)));
  }
  if (const Load load = count_load(study); load.busy > 0) {
    warnings.push_back(
        fmt::format("the machine was busy in {} of {} (e.g. {}); times and speed-ups of these are "
                    "not those of an idle machine",
                    load.busy, counted(load.measured, "run"), load.example));
  }
  add_screened(study, warnings);
  std::vector<const Run*> runs;
  std::map<std::string, std::size_t> older;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) runs.push_back(&run);
    if (row.older_runs > 0) older[row.older_program] += row.older_runs;
  }
  for (const auto& [program, count] : older) {
    warnings.push_back(fmt::format(
        "the program ({}) has changed since {} of these {}; sweep --new-build runs them again",
        program, count, counted(runs.size(), "run")));
  }
  std::ranges::move(differing_covariates(runs), std::back_inserter(warnings));
  const std::vector<std::string> names = point_names(study);
  std::vector<CovariateRow> asked;
  for (std::size_t i = 0; i < names.size(); ++i) asked.push_back({names[i], &study.rows[i].runs});
  CovariateFindings found = find_covariates(asked);
  study.causes = found.causes;
  std::ranges::move(found.sentences, std::back_inserter(warnings));
}

std::size_t busy_runs(const Row& row) {
  return count_where(row.runs, &Run::is_busy);
}

std::vector<std::string> machine_notes(const Study& study) {
  std::vector<std::string> notes;
  if (const std::string note = session_note(study); !note.empty()) notes.push_back(note);
  if (const std::string note = load_note(study); !note.empty()) notes.push_back(note);
  const auto is_measured = [](const Row& row) { return row.first()->kind == "measured"; };
  if (study.replicas_are_cores && std::ranges::any_of(study.rows, is_measured)) {
    notes.push_back(
        "there is no GPU: a replica (column gpus) is a group of CPU cores of this machine, which "
        "share its memory bandwidth");
  }
  return notes;
}

std::vector<std::string> row_notes(const Study& study) {
  std::vector<std::string> notes = work_notes(study.rows);
  const auto studies =
      count_rows(study, [](const Run& run) { return run->kind == "measured" ? run->study : ""; });
  if (studies.size() > 1) notes.push_back("records of several studies: " + counts_text(studies));
  const auto builds = count_rows(study, [](const Run& run) { return run->build(); });
  if (builds.size() > 1) notes.push_back("records of several builds: " + counts_text(builds));
  if (const auto hidden = hidden_differences(study); !hidden.empty()) {
    notes.push_back("layouts also differ in " + join(hidden, ", "));
  }
  std::size_t left_out = 0;
  bool tainted = false;
  for (const Row& row : study.rows) {
    left_out += row.aside.size();
    tainted = tainted || row.tainted;
  }
  if (left_out > 0) {
    notes.push_back(fmt::format("{} {} run{} left out", left_out, yielding_names(),
                                left_out == 1 ? " is" : "s are"));
  }
  if (tainted) {
    notes.push_back(
        fmt::format("rows of only disturbed ({}) runs have no interval", yielding_names()));
  }
  return notes;
}

std::string survivors_text(const Row& row) {
  const std::size_t completed = row.runs.size() + row.aside.size();
  return fmt::format("{} of {} runs completed", completed, completed + row.lost);
}

std::string row_label(const Row& row) {
  if (!row.gap.empty()) return row.gap;
  std::set<std::string> labels;
  for (const Run& run : row.runs) {
    if (run->kind != "measured") labels.insert(run->kind);
    if (run->flags.synthetic) labels.insert("synthetic");
    if (run->plan.gradients_staged.value_or(false)) labels.insert("staged");
    for (const Reason& reason : reasons()) {
      if (reason.in_tables == Effect::yields && reason.holds(run)) labels.insert(reason.name);
    }
    for (const Covariate& covariate : covariates()) {
      if (!covariate.unlike) continue;
      const bool differs = covariate.value(run) != covariate.value(row.first());
      if (run->kind == "measured" && differs) labels.insert(covariate.unlike);
    }
  }
  if (const std::size_t busy = busy_runs(row); busy > 0) {
    labels.insert("busy" + in_runs(busy, row));
  }
  const std::size_t missed =
      count_where(row.runs, [](const Run& run) { return !run.goal.empty() && !run.goal_reached; });
  if (missed > 0) labels.insert("goal not reached" + in_runs(missed, row));
  if (!row.work.empty()) labels.insert(row.work);
  if (const std::size_t older = row.older_runs; older > 0) {
    labels.insert(
        (older == row.runs.size() ? "" : fmt::format("{} of {} runs ", older, row.runs.size())) +
        "of an older " + row.older_program);
  }
  if (row.lost > 0) labels.insert(survivors_text(row));
  return join({labels.begin(), labels.end()}, ", ");
}

std::string common_label(const Study& study) {
  const std::string label = row_label(study.rows.front());
  const bool all =
      std::ranges::all_of(study.rows, [&](const Row& row) { return row_label(row) == label; });
  return all ? label : "";
}

std::string study_title(const Study& study) {
  const std::string trained = trained_name(study);
  std::string title = trained;
  if (!study.precision.empty()) title += ", " + study.precision;
  title +=
      study.scaling == Scaling::unknown    ? ", scaling type not known"
      : study.scaling == Scaling::one_size ? ", one size"
      : study.scaling == Scaling::same_work
          ? stated_work(study.rows.front().first()).empty() ? ", same work assumed" : ", same work"
          : fmt::format(", {} scaling", to_string(study.scaling));
  for (const auto& [name, value] : study.work) {
    const bool is_said = name == "study" && to_text(value) == trained;
    if (!is_said) title += fmt::format(", {} {}", name, to_text(value));
  }
  if (!study.goal.empty() && !sets_apart(study, "until")) title += ", to " + study.goal;
  if (const std::string label = common_label(study); !label.empty()) title += " (" + label + ")";
  return title;
}

std::set<std::string> study_names(const Study& study) {
  auto names = distinct(study.rows, [](const Row& row) { return row.first()->study; });
  names.erase("");
  return names;
}

std::string of_studies(const std::set<std::string>& names) {
  if (names.empty()) return "";
  return " of " + join_first(kMostStudyNames, {names.begin(), names.end()});
}

std::string counted_replicas(const Study& study, int gpus) {
  return counted(gpus, study.replicas_are_cores ? "replica" : "GPU");
}

std::string replicas_text(const Study& study, const Row& row) {
  std::string text = counted_replicas(study, row.first()->layout.gpus);
  if (row.distinct_nodes) text += " on " + counted(*row.distinct_nodes, "node");
  if (row.distinct_tasks) text += " in " + counted(*row.distinct_tasks, "task");
  return text;
}

void distinguish_layouts(Study& study) {
  using Member = std::optional<int> Row::*;
  const auto distinguish = [&](const MatchRule& rule, auto LayoutFacts::*what, Member distinct) {
    std::map<PointKey, std::vector<Row*>> groups;
    for (std::vector<Row>* rows : {&study.rows, &study.gaps}) {
      for (Row& row : *rows) groups[row.first().key(rule)].push_back(&row);
    }
    const auto value = [what](const Row* row) { return row->first()->layout.*what; };
    for (auto& [key, rows] : groups) {
      if (std::ranges::adjacent_find(rows, std::ranges::not_equal_to(), value) == rows.end()) {
        continue;
      }
      for (Row* row : rows) row->*distinct = value(row);
    }
  };
  MatchRule rule = MatchRule::row();
  rule.cpus = MatchCpus::matched;
  rule.tasks = false;
  distinguish(rule, &LayoutFacts::ntasks, &Row::distinct_tasks);
  rule.nodes = false;
  distinguish(rule, &LayoutFacts::nodes, &Row::distinct_nodes);
}

std::vector<std::string> point_names(const Study& study, const std::vector<const Row*>& rows) {
  const auto parts = mapped(rows, [&](const Row* row) { return name_parts(study, *row); });
  std::vector<std::string> names(rows.size());
  if (rows.empty()) return names;
  for (std::size_t k = 0; k < parts.front().size(); ++k) {
    const auto seen = distinct(parts, [k](const auto& row) { return row[k]; });
    if (seen.size() < 2 && k != kReplicas && rows.size() > 1) continue;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (parts[i][k].empty()) continue;
      names[i] += (names[i].empty() ? "" : ", ") + parts[i][k];
    }
  }
  return names;
}

}  // namespace paceline

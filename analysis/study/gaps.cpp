#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "analysis/study/study.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr std::size_t kMostSeries = 6;  // in a note

// By what a run of the same size serves another that is wanted. A plan, and the record of a run
// that left none itself, give only what their spec says: backend and CPUs may be the program's
// choice.
MatchRule serving_rule(const Run& wanted, bool is_planned) {
  const Point& asked = wanted->parameters;
  const bool backend = !is_planned || asked.find("backend") != nullptr;
  const bool cpus = !is_planned || asked.find("cpus_per_task") || asked.find("cpus_per_replica");
  MatchRule rule{.kind = true,
                 .backend = backend,
                 .replicas = true,
                 .nodes = true,
                 .tasks = backend,
                 .cpus = cpus ? MatchCpus::of_task : MatchCpus::none};
  static const MatchRule of_row = MatchRule::row();
  rule.only.emplace();
  for (const auto& [name, value] : asked.values()) {
    if (of_row.counts(name)) rule.only->push_back(name);
  }
  return rule;
}

Row make_gap(Run run, const std::string& why) {
  Row row;
  row.gap = why;
  row.runs.push_back(std::move(run));
  return row;
}

// Takes a gap unless a row, or a gap that it has, serves.
class Gaps {
 public:
  explicit Gaps(const Study& study) : study_(study) {}

  void add(Run wanted, const std::string& why, bool is_planned) {
    const MatchRule rule = serving_rule(wanted, is_planned);
    auto known = std::ranges::find(known_, rule, &Known::rule);
    if (known == known_.end()) {
      known = known_.insert(known_.end(), {rule, {}});
      for (const Row& row : study_.rows) known->keys.insert(row.first().key(rule));
      for (const Row& gap : gaps_) known->keys.insert(gap.first().key(rule));
    }
    if (known->keys.contains(wanted.key(rule))) return;
    for (Known& each : known_) each.keys.insert(wanted.key(each.rule));
    gaps_.push_back(make_gap(std::move(wanted), why));
  }

  std::vector<Row> take() { return std::move(gaps_); }

 private:
  const Study& study_;
  struct Known {
    MatchRule rule;
    std::unordered_set<PointKey> keys;
  };
  std::vector<Known> known_;  // what serves, by what is asked
  std::vector<Row> gaps_;
};

Run planned_run(const ExpectedRuns& plan, const Point& point, const Study& study) {
  Run run;
  RunRecord& record = own_record(run);
  record.study = plan.study;
  record.workload = plan.workload;
  record.parameters = point;
  record.layout = layout_facts(recorded_layout(point, plan.study));
  run.precision = point.text("precision").value_or(study.precision);
  run.backend = point.text("backend").value_or(lone_backend());
  return run;
}

// Rows of growing sizes that are alike but for their size.
using Sizes = std::map<int, const Row*>;

struct Matrix {
  std::vector<Sizes> series;  // in the order of their first rows
  std::map<std::pair<std::string, std::string>, std::set<int>> sizes;  // of a kind and system

  explicit Matrix(const Study& study) {
    const MatchRule rule = MatchRule::base(study.axes);
    std::unordered_map<PointKey, std::size_t> index;
    for (const Row& row : study.rows) {
      const Run& run = row.first();
      const auto [known, is_new] = index.emplace(run.key(rule), series.size());
      if (is_new) series.emplace_back();
      series[known->second][run->layout.gpus] = &row;
      sizes[{run->kind, run.system}].insert(run->layout.gpus);
    }
  }

  // Sizes that others of the system have and this series has not.
  std::vector<int> missing(const Sizes& here) const {
    const Run& run = here.begin()->second->first();
    const std::set<int>& all = sizes.at({run->kind, run.system});
    std::vector<int> result(all.begin(), all.end());
    std::erase_if(result, [&](int gpus) { return here.contains(gpus); });
    return result;
  }
};

bool is_between(const Sizes& series, int gpus) {
  return series.begin()->first < gpus && gpus < series.rbegin()->first;
}

// A run of another size in the place of `like`. Its nodes cannot be known.
Run resized(const Run& like, int gpus) {
  Run run;
  run.system = like.system;
  run.precision = like.precision;
  run.backend = like.backend;
  RunRecord& record = own_record(run);
  record.kind = like->kind;
  record.study = like->study;
  record.workload = like->workload;
  record.parameters = like->parameters;
  record.parameters.set("gpus", std::int64_t{gpus});
  const LayoutFacts& there = like->layout;
  LayoutFacts& layout = record.layout;
  layout.replicas_are = there.replicas_are;
  layout.gpus = gpus;
  layout.ntasks = there.ntasks;
  layout.cpus_per_task = there.cpus_per_task;
  if (const auto each = like->parameters.integer("gpus_per_task"); each && *each > 1) {
    layout.ntasks = std::max(1, gpus / static_cast<int>(*each));
  } else if (there.ntasks == there.gpus) {
    layout.ntasks = gpus;
  } else if (like.replicas_are_cores() && there.cpus_per_task) {
    layout.cpus_per_task = *there.cpus_per_task / there.gpus * gpus;
  }
  return run;
}

bool has_place_in(const Study& study, const Run& planned) {
  return planned->workload == study.workload && planned.precision == study.precision &&
         planned.replicas_are_cores() == study.replicas_are_cores &&
         may_have(planned, study.work) && has_runs(study, planned->study);
}

void add_planned(Gaps& gaps, const Study& study, const std::vector<ExpectedRuns>& plans) {
  for (const ExpectedRuns& plan : plans) {
    for (const Point& point : plan.points) {
      const Run run = planned_run(plan, point, study);
      const char* why = plan.is_unreadable(point) ? "unreadable" : "not run";
      if (has_place_in(study, run)) gaps.add(run, why, true);
    }
  }
}

void add_holes(Gaps& gaps, const Study& study) {
  const Matrix matrix(study);
  for (const Sizes& sizes : matrix.series) {
    for (const int gpus : matrix.missing(sizes)) {
      if (!is_between(sizes, gpus)) continue;
      gaps.add(resized(sizes.upper_bound(gpus)->second->first(), gpus), "not run", false);
    }
  }
}

}  // namespace

std::vector<Row> find_gaps(const Study& study, const std::vector<Run>& unfinished,
                           const std::vector<ExpectedRuns>& plans) {
  Gaps gaps(study);
  for (const Run& run : unfinished) {
    gaps.add(run, run->status, true);
  }
  add_planned(gaps, study, plans);
  if (plans.empty()) add_holes(gaps, study);
  return gaps.take();
}

std::string open_ends_note(const Study& study) {
  const Matrix matrix(study);
  std::vector<std::string> parts;
  std::size_t more = 0;
  for (const Sizes& sizes : matrix.series) {
    std::vector<std::string> missing;
    for (const int gpus : matrix.missing(sizes)) {
      if (!is_between(sizes, gpus)) missing.push_back(std::to_string(gpus));
    }
    if (missing.empty()) continue;
    const Run& run = sizes.begin()->second->first();
    std::vector<std::string> names = {run.system, run.backend};
    for (const std::string& axis : study.axes) {
      names.push_back(fmt::format("{} {}", axis, run->parameters.text(axis).value_or("-")));
    }
    if (const auto cpus = run.matched_cpus()) {
      names.push_back(fmt::format(
          "{} {:g}", study.replicas_are_cores ? "CPUs per replica" : "cpus-per-task", *cpus));
    }
    std::erase(names, "");
    if (parts.size() < kMostSeries) {
      const std::string numbers = join(missing, ", ");
      parts.push_back(fmt::format("{} {} ({})", numbers, numbers == "1" ? "replica" : "replicas",
                                  join(names, ", ")));
    } else {
      ++more;
    }
  }
  if (parts.empty()) return "";
  return "missing, though others of their size were run: " + join(parts, "; ") +
         (more > 0 ? fmt::format("; {} more", more) : "");
}

std::string no_table_note(const std::vector<ExpectedRuns>& plans,
                          const std::vector<Study>& studies) {
  std::set<std::string> names;
  std::size_t points = 0;
  for (const ExpectedRuns& plan : plans) {
    for (const Point& point : plan.points) {
      if (std::any_of(studies.begin(), studies.end(), [&](const Study& study) {
            return has_place_in(study, planned_run(plan, point, study));
          })) {
        continue;
      }
      ++points;
      std::string name = plan.workload == kCommandWorkload ? plan.study : plan.workload;
      for (const auto& [what, value] : point.values()) {
        if (!has_role(what, Role::table) && !has_role(what, Role::work)) continue;
        name += fmt::format(", {} {}", what, to_text(value));
      }
      names.insert(name);
    }
  }
  if (points == 0) return "";
  return fmt::format("{} planned point{} without a table, as no such run completed: {}", points,
                     points == 1 ? " is" : "s are",
                     join_first(kMostSeries, {names.begin(), names.end()}, "; "));
}

}  // namespace paceline

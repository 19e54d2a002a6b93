#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "analysis/study/study.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr std::size_t kMostSeries = 6;  // in a note

// By what a run of the same size serves another that is wanted. A plan, and the record of a run
// that left none itself, give only what their spec says: backend and CPUs may be the program's
// choice.
struct Demand {
  bool backend = true, cpus = true;
  std::vector<std::string> names;  // of parameters
  friend bool operator<(const Demand& a, const Demand& b) {
    return std::tie(a.backend, a.cpus, a.names) < std::tie(b.backend, b.cpus, b.names);
  }

  Demand(const Run& wanted, bool is_planned) {
    const Point& asked = wanted->parameters;
    backend = !is_planned || asked.find("backend");
    cpus = !is_planned || asked.find("cpus_per_task") || asked.find("cpus_per_replica");
    for (const auto& [name, value] : asked.values()) {
      if (!has_own_place(name) && find_parameter(name)->identity()) names.push_back(name);
    }
  }

  // Equal of two runs where one serves the other.
  std::string make_key(const Run& run) const {
    std::string key = fmt::format("{} {} ", run->layout.gpus, run->layout.nodes.value_or(-1));
    add_to_key(key, run->kind);
    if (backend) {
      add_to_key(key, run.backend);
      key += fmt::format("{} ", run->layout.ntasks.value_or(-1));
    }
    if (cpus) key += fmt::format("{} ", run->layout.cpus_per_task.value_or(-1));
    for (const std::string& name : names) {
      const auto text = run->parameters.text(name);
      key += text ? "=" : "-";
      add_to_key(key, text.value_or(""));
    }
    return key;
  }
};

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
    const Demand demand(wanted, is_planned);
    const auto [known, is_new] = known_.emplace(demand, std::unordered_set<std::string>());
    if (is_new) {
      for (const Row& row : study_.rows) known->second.insert(demand.make_key(row.first()));
      for (const Row& gap : gaps_) known->second.insert(demand.make_key(gap.first()));
    }
    if (known->second.contains(demand.make_key(wanted))) return;
    for (auto& [other, keys] : known_) keys.insert(other.make_key(wanted));
    gaps_.push_back(make_gap(std::move(wanted), why));
  }

  std::vector<Row> take() { return std::move(gaps_); }

 private:
  const Study& study_;
  std::map<Demand, std::unordered_set<std::string>> known_;  // what serves, by what is asked
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

// What a series of growing sizes holds fixed.
using Series = std::tuple<std::string, std::string, std::string, std::string, double>;

Series make_series(const Study& study, const Run& run) {
  std::vector<std::string> axes;
  for (const std::string& axis : study.axes) {
    axes.push_back(fmt::format("{} {}", axis, run->parameters.text(axis).value_or("-")));
  }
  const double cpus = run.replicas_are_cores() ? run.cpus_per_replica().value_or(0)
                                               : run->layout.cpus_per_task.value_or(0);
  return {run->kind, run.system, run.backend, join(axes, ", "), cpus};
}

struct Matrix {
  std::map<Series, std::map<int, const Row*>> series;
  std::map<std::pair<std::string, std::string>, std::set<int>> sizes;  // of a kind and system

  explicit Matrix(const Study& study) {
    for (const Row& row : study.rows) {
      const Run& run = row.first();
      series[make_series(study, run)][run->layout.gpus] = &row;
      sizes[{run->kind, run.system}].insert(run->layout.gpus);
    }
  }

  // Sizes that others of the system have and this series has not.
  std::vector<int> missing(const Series& key) const {
    std::vector<int> result;
    const auto& here = series.at(key);
    for (const int gpus : sizes.at({std::get<0>(key), std::get<1>(key)})) {
      if (!here.contains(gpus)) result.push_back(gpus);
    }
    return result;
  }
};

bool is_between(const std::map<int, const Row*>& series, int gpus) {
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
  for (const auto& [key, sizes] : matrix.series) {
    for (const int gpus : matrix.missing(key)) {
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
  for (const auto& [key, sizes] : matrix.series) {
    std::vector<std::string> missing;
    for (const int gpus : matrix.missing(key)) {
      if (!is_between(sizes, gpus)) missing.push_back(std::to_string(gpus));
    }
    if (missing.empty()) continue;
    const auto& [kind, system, backend, axes, cpus] = key;
    std::vector<std::string> names = {system, backend, axes};
    if (cpus > 0) {
      names.push_back(fmt::format(
          "{} {:g}", study.replicas_are_cores ? "CPUs per replica" : "cpus-per-task", cpus));
    }
    std::erase(names, "");
    if (parts.size() < kMostSeries) {
      parts.push_back(fmt::format("{} replicas ({})", join(missing, ", "), join(names, ", ")));
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
  return fmt::format("{} planned point{} without a table, as no run of their like completed: {}",
                     points, points == 1 ? " is" : "s are",
                     join_first(kMostSeries, {names.begin(), names.end()}, "; "));
}

}  // namespace paceline

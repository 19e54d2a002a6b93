#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/evidence/evidence.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

enum class Planned { no, otherwise, yes };

// The points of a plan by the values that they give to some axes: a plan may have 100,000, and as
// many runs ask for theirs.
class PointsOfPlan {
 public:
  explicit PointsOfPlan(const ExpectedRuns& plan) : plan_(plan) {}

  const std::vector<const Point*>& with(
      const std::vector<std::pair<std::string, std::string>>& axes) {
    static const std::vector<const Point*> kNone;
    std::vector<std::string> names;
    Point asked;
    for (const auto& [name, value] : axes) {
      if (find_parameter(name) == nullptr) return kNone;
      names.push_back(name);
      asked.set(name, value);
    }
    const auto [table, is_new] = by_names_.emplace(names, Table());
    if (is_new) fill(names, table->second);
    const auto found = table->second.find(PointKey({asked}, {.only = names}));
    return found == table->second.end() ? kNone : found->second;
  }

 private:
  using Table = std::unordered_map<PointKey, std::vector<const Point*>>;

  void fill(const std::vector<std::string>& names, Table& table) const {
    for (const Point& point : plan_.points) {
      Point named = point;  // the axes of a run name a program without its recipe
      if (const auto tag = point.text("program")) named.set("program", name_of_program(*tag));
      table[PointKey({named}, {.only = names})].push_back(&point);
    }
  }

  const ExpectedRuns& plan_;
  std::map<std::vector<std::string>, Table> by_names_;
};

// Whether a study's plan names the run's point, and with the run's parameters.
Planned planned(const Run& run, const std::vector<ExpectedRuns>& plans,
                std::vector<PointsOfPlan>& plan_points) {
  static const MatchRule asked{.without = MatchRule::row().without};
  const auto axes = named_values(run->point);
  Planned result = Planned::no;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].study != run->study || plans[i].workload != run->workload) continue;
    for (const Point* point : plan_points[i].with(axes)) {
      const bool done = serves(run->parameters, *point, asked);
      if (done) return Planned::yes;
      result = Planned::otherwise;
    }
  }
  return result;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> named_values(std::string_view point) {
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

std::size_t drop_superseded(std::vector<Run>& runs, const std::vector<ExpectedRuns>& plans) {
  if (plans.empty()) return 0;
  std::set<std::string> begun;  // studies that have results of what their plan says now
  std::vector<PointsOfPlan> plan_points(plans.begin(), plans.end());
  std::vector<Planned> of_run;
  for (const Run& run : runs) {
    of_run.push_back(planned(run, plans, plan_points));
    if (of_run.back() == Planned::yes && run->status == "completed") begun.insert(run->study);
  }
  std::size_t at = 0;
  return std::erase_if(runs, [&](const Run& run) {
    return of_run[at++] == Planned::otherwise && begun.contains(run->study);
  });
}

std::size_t drop_older_builds(std::vector<Run>& runs) {
  const auto repeat = [](const Run& run) {
    return std::tuple(std::filesystem::path(run.where).parent_path().string(), run->point,
                      run->repeat);
  };
  std::map<std::tuple<std::string, std::string, int>, Run> newest;
  for (const Run& run : runs) {
    if (run->status != "completed" || run->kind != "measured") continue;
    const auto [found, is_new] = newest.emplace(repeat(run), run);
    if (!is_new && found->second->attempt < run->attempt) found->second = run;
  }
  return std::erase_if(runs, [&](const Run& run) {
    const auto found = newest.find(repeat(run));
    if (found == newest.end() || run->status != "completed" || run->build().empty()) return false;
    const Run& last = found->second;
    return last->attempt > run->attempt && !last->build().empty() &&
           last->build() != run->build() && last->parameters == run->parameters &&
           alike(last.machine, run.machine);
  });
}

}  // namespace paceline

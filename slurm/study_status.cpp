#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <unordered_map>

#include "engine/core/text.h"
#include "results/machine.h"
#include "slurm/study_view.h"
#include "sweeps/study_plan.h"

namespace paceline {

namespace {

struct Phase {
  RunPhase phase;
  const char* name;  // for programs
  const char* text;
  char mark;
};

constexpr Phase kPhases[] = {{RunPhase::done, "done", "done", '#'},
                             {RunPhase::running, "running", "running", '>'},
                             {RunPhase::pending, "pending", "pending", '.'},
                             {RunPhase::failed, "failed", "failed", 'x'},
                             {RunPhase::unsent, "unsent", "not submitted", '-'},
                             {RunPhase::unknown, "unknown", "not known", '?'}};

const Phase& phase_style(RunPhase phase) {
  return *std::find_if(std::begin(kPhases), std::end(kPhases),
                       [&](const Phase& known) { return known.phase == phase; });
}

using Runs = std::vector<const RunView*>;

std::size_t count_runs(const Runs& runs, RunPhase phase) {
  return count_where(runs, [&](const RunView* run) { return run->phase == phase; });
}

// Runs that have a value in common, in the order of the first of each.
template <typename Key>
std::vector<Runs> grouped(const Runs& runs, Key make_key) {
  std::unordered_map<std::string, std::size_t> places;
  std::vector<Runs> groups;
  for (const RunView* run : runs) {
    const auto [place, is_new] = places.emplace(make_key(*run), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(run);
  }
  return groups;
}

std::string list_jobs(const Runs& runs) {
  std::set<std::int64_t> jobs;
  for (const RunView* run : runs) {
    if (run->slurm.job > 0) jobs.insert(run->slurm.job);
  }
  return jobs.empty()
             ? "not submitted"
             : fmt::format("{} {}", jobs.size() == 1 ? "job" : "jobs", fmt::join(jobs, ", "));
}

std::string make_bar(const Runs& runs) {
  std::string bar = "[";
  for (const RunView* run : runs) bar += phase_style(run->phase).mark;
  return bar + "]";
}

// `runs` are those of one point.
std::string point_line(Runs runs, std::size_t width) {
  std::ranges::sort(runs, {}, [](const RunView* run) { return run->element.repeat; });
  std::string text = fmt::format("  {:<{}}  {} {} of {} done", runs.front()->element.point, width,
                                 make_bar(runs), count_runs(runs, RunPhase::done), runs.size());
  std::vector<RepeatReason> reasons;
  for (const RunView* run : runs) {
    if (run->phase != RunPhase::failed && run->phase != RunPhase::unsent &&
        run->phase != RunPhase::unknown) {
      continue;
    }
    reasons.push_back({run->element.repeat,
                       fmt::format("{}: {}", phase_style(run->phase).text, run->why),
                       run->slurm.job > 0 ? run->slurm.text() : ""});
  }
  if (!reasons.empty()) text += "; " + summarize_reasons(std::move(reasons), " ");
  return text + "\n";
}

// Slurm says why it waits: the same of all runs of a shape, mostly.
std::string waiting_for(const Runs& runs) {
  std::set<std::string> reasons;
  for (const RunView* run : runs) {
    const bool has_reason = !run->why.empty() && run->why != "None";
    if (run->phase == RunPhase::pending && has_reason) reasons.insert(run->why);
  }
  return reasons.empty() ? "" : "; pending for " + join({reasons.begin(), reasons.end()}, ", ");
}

std::string format_phases(const Runs& runs) {
  std::string text =
      fmt::format("{} of {} runs done", count_runs(runs, RunPhase::done), runs.size());
  for (const Phase& phase : kPhases) {
    const std::size_t count = count_runs(runs, phase.phase);
    if (phase.phase != RunPhase::done && count > 0) {
      text += fmt::format(", {} {}", count, phase.text);
    }
  }
  return text;
}

// The lower, the sooner somebody wants to see it.
int sort_key(const Runs& point) {
  if (count_runs(point, RunPhase::failed) + count_runs(point, RunPhase::unknown) > 0) return 0;
  return count_runs(point, RunPhase::running) > 0 ? 1 : 2;
}

std::string point_lines(const Runs& runs, std::size_t most) {
  std::vector<Runs> points = grouped(runs, [](const RunView& run) { return run.element.point; });
  if (points.size() > most) std::ranges::stable_sort(points, {}, sort_key);
  const std::size_t shown = std::min(most, points.size());
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max(width, points[i].front()->element.point.size());
  }
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += point_line(points[i], width);
  if (shown == points.size()) return text;
  const Runs others = flattened(std::span(points).subspan(shown), std::identity());
  return text + fmt::format("  ... and {} more points: {}; --all lists them\n",
                            points.size() - shown, format_phases(others));
}

std::vector<std::string> not_counted(const std::vector<RunView>& runs) {
  const auto is_open = [](const RunView& run) { return run.phase != RunPhase::done; };
  return not_counted_lines(mapped_if(runs, is_open, &RunView::other_machine));
}

}  // namespace

std::string phases_text(const std::vector<RunView>& runs) {
  return format_phases(pointers_to(runs));
}

std::string status_text(const std::vector<RunView>& runs, std::size_t most_points) {
  std::string text;
  const std::vector<Runs> shapes =
      grouped(pointers_to(runs), [](const RunView& run) { return run.shape; });
  constexpr std::size_t kFewest = 10;
  const std::size_t most = std::max(most_points / std::max<std::size_t>(1, shapes.size()), kFewest);
  for (const Runs& here : shapes) {
    text += fmt::format("{} ({}): {}{}\n", here.front()->shape, list_jobs(here),
                        format_phases(here), waiting_for(here));
    text += point_lines(here, most);
  }
  for (const std::string& line : not_counted(runs)) text += "note: " + line + "\n";
  if (const std::size_t unsent = runs_in_phase(runs, RunPhase::unsent); unsent > 0) {
    text += fmt::format("note: {} run{} for the next paceline submit\n", unsent,
                        unsent == 1 ? " waits" : "s wait");
  }
  return text;
}

Json status_json(const std::vector<RunView>& runs) {
  Json rows = Json::array();
  for (const RunView& run : runs) {
    Json row = {{"point", run.element.point},
                {"repeat", run.element.repeat},
                {"shape", run.shape},
                {"state", phase_style(run.phase).name},
                {"why", run.why},
                {"job", nullptr}};
    if (run.slurm.job > 0) row["job"] = run.slurm.text();
    rows.push_back(row);
  }
  Json json = {{"total", runs.size()}};
  for (const Phase& phase : kPhases) json[phase.name] = runs_in_phase(runs, phase.phase);
  json["runs"] = rows;
  json["not_counted"] = not_counted(runs);
  return json;
}

}  // namespace paceline

#include "slurm/study_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/text.h"
#include "results/machine.h"

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

const Phase& look_of(RunPhase phase) {
  return *std::find_if(std::begin(kPhases), std::end(kPhases),
                       [&](const Phase& known) { return known.phase == phase; });
}

std::vector<std::string> values_of(const std::vector<RunView>& runs, std::string RunView::*field) {
  std::vector<std::string> values;
  for (const RunView& run : runs) {
    if (std::find(values.begin(), values.end(), run.*field) == values.end()) {
      values.push_back(run.*field);
    }
  }
  return values;
}

std::string jobs_of(const std::vector<RunView>& runs, const std::string& shape) {
  std::set<std::int64_t> jobs;
  for (const RunView& run : runs) {
    if (run.shape == shape && run.slurm.job > 0) jobs.insert(run.slurm.job);
  }
  std::vector<std::string> texts;
  texts.reserve(jobs.size());
  for (const std::int64_t job : jobs) texts.push_back(std::to_string(job));
  return texts.empty() ? "not submitted"
                       : (texts.size() == 1 ? "job " : "jobs ") + join(texts, ", ");
}

// The runs of one point, by repeat.
std::vector<RunView> runs_of(const std::vector<RunView>& runs, const std::string& shape,
                             const std::string& point) {
  std::vector<RunView> mine;
  for (const RunView& run : runs) {
    if (run.shape == shape && run.element.point == point) mine.push_back(run);
  }
  std::sort(mine.begin(), mine.end(),
            [](const RunView& a, const RunView& b) { return a.element.repeat < b.element.repeat; });
  return mine;
}

std::string bar_of(const std::vector<RunView>& runs) {
  std::string bar = "[";
  for (const RunView& run : runs) bar += look_of(run.phase).mark;
  return bar + "]";
}

std::string point_line(const std::vector<RunView>& runs, std::size_t width) {
  std::string text = fmt::format("  {:<{}}  {} {} of {} done", runs.front().element.point, width,
                                 bar_of(runs), runs_in_phase(runs, RunPhase::done), runs.size());
  std::vector<std::pair<std::string, std::vector<int>>> repeats;  // by what is to be said of them
  for (const RunView& run : runs) {
    if (run.phase != RunPhase::failed && run.phase != RunPhase::unsent &&
        run.phase != RunPhase::unknown) {
      continue;
    }
    const std::string said = fmt::format("{}: {}", look_of(run.phase).text, run.why);
    if (repeats.empty() || repeats.back().first != said) repeats.push_back({said, {}});
    repeats.back().second.push_back(run.element.repeat);
  }
  for (const auto& [said, numbers] : repeats) {
    text += fmt::format("; repeat{} {} {}", numbers.size() == 1 ? "" : "s",
                        fmt::join(numbers, ", "), said);
  }
  return text + "\n";
}

// Slurm says why it waits: the same of all runs of a shape, mostly.
std::string waiting_for(const std::vector<RunView>& runs, const std::string& shape) {
  std::set<std::string> reasons;
  for (const RunView& run : runs) {
    const bool told = !run.why.empty() && run.why != "None";
    if (run.shape == shape && run.phase == RunPhase::pending && told) reasons.insert(run.why);
  }
  return reasons.empty() ? "" : "; pending for " + join({reasons.begin(), reasons.end()}, ", ");
}

std::vector<std::string> not_counted(const std::vector<RunView>& runs) {
  std::vector<std::string> machines;
  for (const RunView& run : runs) {
    if (run.phase != RunPhase::done) machines.push_back(run.other_machine);
  }
  return not_counted_lines(machines);
}

}  // namespace

std::string phases_text(const std::vector<RunView>& runs) {
  std::string text =
      fmt::format("{} of {} runs done", runs_in_phase(runs, RunPhase::done), runs.size());
  for (const Phase& phase : kPhases) {
    const std::size_t count = runs_in_phase(runs, phase.phase);
    if (phase.phase != RunPhase::done && count > 0) {
      text += fmt::format(", {} {}", count, phase.text);
    }
  }
  return text;
}

std::string status_text(const std::vector<RunView>& runs) {
  std::size_t width = 0;
  for (const RunView& run : runs) width = std::max(width, run.element.point.size());
  std::string text;
  for (const std::string& shape : values_of(runs, &RunView::shape)) {
    std::vector<RunView> here;
    for (const RunView& run : runs) {
      if (run.shape == shape) here.push_back(run);
    }
    text += fmt::format("{} ({}): {}{}\n", shape, jobs_of(runs, shape), phases_text(here),
                        waiting_for(runs, shape));
    std::vector<std::string> points;
    for (const RunView& run : here) {
      if (std::find(points.begin(), points.end(), run.element.point) == points.end()) {
        points.push_back(run.element.point);
      }
    }
    for (const std::string& point : points) text += point_line(runs_of(here, shape, point), width);
  }
  for (const std::string& line : not_counted(runs)) text += "note: " + line + "\n";
  return text;
}

Json status_json(const std::vector<RunView>& runs) {
  Json rows = Json::array();
  for (const RunView& run : runs) {
    Json row = {{"point", run.element.point},
                {"repeat", run.element.repeat},
                {"shape", run.shape},
                {"state", look_of(run.phase).name},
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

#include "sweeps/study_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/text.h"
#include "results/machine.h"

namespace paceline {

namespace {

constexpr EnumName<RunState> kRunStateNames[] = {{RunState::done, "done"},
                                                 {RunState::missing, "missing"},
                                                 {RunState::failed, "failed"},
                                                 {RunState::changed, "changed"},
                                                 {RunState::elsewhere, "elsewhere"}};

const char* to_string(RunState state) {
  return name_in(kRunStateNames, state);
}

std::vector<std::string> warnings(const StudyPlan& plan) {
  std::vector<std::string> lines;
  for (const std::string& note : plan.expansion.notes) lines.push_back("note: " + note);
  add_plan_notes(plan, lines);
  return lines;
}

struct PointState {
  std::size_t done = 0, to_make = 0;
  std::string text;          // "2 of 3 done; repeat 2: rank 1 was killed"
  bool has_reasons = false;  // there is more to say than what is done
};

PointState state_of_point(const StudyPlan& plan, const std::vector<const RunStatus*>& runs,
                          bool can_run) {
  PointState state;
  std::vector<RepeatReason> reasons;
  std::size_t other_build = 0;
  for (const RunStatus* status : runs) {
    other_build += status->other_build ? 1 : 0;
    ++(status->state == RunState::done ? state.done : state.to_make);
    if (status->state != RunState::done && status->state != RunState::elsewhere &&
        status->why != kNoRecord) {
      reasons.push_back({status->run.repeat, status->why});
    }
  }
  if (!can_run) state.to_make = 0;
  state.text = fmt::format("{} of {} done", state.done, plan.spec.repeats);
  if (other_build > 0) state.text += fmt::format(", {} by another build", other_build);
  if (!can_run) state.text += "; cannot run here";
  state.has_reasons = !reasons.empty();
  if (state.has_reasons) state.text += "; " + summarize_reasons(std::move(reasons));
  return state;
}

// "... and 99900 more points: 0 runs done, 74925 to do; --all lists them"
std::string others_text(const std::vector<PointState>& states,
                        const std::vector<std::size_t>& order, std::size_t shown) {
  std::size_t done = 0, to_make = 0;
  for (std::size_t i = shown; i < order.size(); ++i) {
    done += states[order[i]].done;
    to_make += states[order[i]].to_make;
  }
  return fmt::format("... and {} more points: {} runs done, {} to do; --all lists them\n",
                     order.size() - shown, done, to_make);
}

std::string point_rows(const StudyPlan& plan, std::size_t most) {
  const auto& points = plan.expansion.points;
  std::vector<std::vector<const RunStatus*>> runs(points.size());
  for (const RunStatus& status : plan.runs) runs[status.run.point].push_back(&status);
  std::vector<PointState> states;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i) {
    states.push_back(state_of_point(plan, runs[i], points[i].cannot_run.empty()));
    order.push_back(i);
  }
  if (points.size() > most) {
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t i) { return states[i].has_reasons; });
  }
  const std::size_t shown = std::min(most, points.size());
  std::size_t width = 5;
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max(width, points[order[i]].point.text().size());
  }
  std::string text = fmt::format("{:>5} {:>6} {:>13} {:>4}  {:<{}}  state\n", "nodes", "ntasks",
                                 "cpus-per-task", "gpus", "point", width);
  for (std::size_t i = 0; i < shown; ++i) {
    const PlannedPoint& planned = points[order[i]];
    const Layout& layout = planned.layout;
    text += fmt::format("{:>5} {:>6} {:>13} {:>4}  {:<{}}  {}\n", layout.nodes, layout.ntasks,
                        layout.cpus_per_task, layout.gpus, planned.point.text(), width,
                        states[order[i]].text);
  }
  return shown < points.size() ? text + others_text(states, order, shown) : text;
}

bool is_to_make(const StudyPlan& plan, const RunStatus& run) {
  return run.state != RunState::done && plan.expansion.points[run.run.point].cannot_run.empty();
}

// For the runs to make. Empty until a run is done.
std::optional<double> estimated_seconds(const StudyPlan& plan) {
  Eta eta;
  std::vector<std::size_t> waiting;
  for (const RunStatus& status : plan.runs) {
    if (status.state == RunState::done) {
      eta.add(status.run.point, status.seconds);
    } else if (is_to_make(plan, status)) {
      waiting.push_back(status.run.point);
    }
  }
  return eta.remaining(waiting);
}

// ", 3 cannot run here"; empty: all can.
std::string hindered_text(const StudyPlan& plan) {
  const std::size_t hindered =
      plan.runs.size() - runs_in_state(plan, RunState::done) - runs_to_make(plan);
  return hindered == 0 ? "" : fmt::format(", {} cannot run here", hindered);
}

struct SameReason {
  std::string before, after;  // the elements' numbers
  std::vector<int> repeats;
  std::vector<std::string> elements;
};

// "1, 2, 4 to 9"
std::string format_list(const std::vector<int>& numbers) {
  constexpr std::size_t kFewest = 4;  // of a range
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i >= kFewest) {
      parts.push_back(fmt::format("{} to {}", numbers[i], numbers[end - 1]));
    } else {
      for (std::size_t k = i; k < end; ++k) parts.push_back(std::to_string(numbers[k]));
    }
    i = end;
  }
  return join(parts, ", ");
}

// "12_3, 12_5, 12_7 and 4 more"
std::string format_list(std::vector<std::string> elements) {
  constexpr std::size_t kMost = 4;
  const std::size_t more = elements.size() > kMost ? elements.size() - kMost + 1 : 0;
  elements.resize(elements.size() - more);
  return join(elements, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::size_t runs_in_state(const StudyPlan& plan, RunState state) {
  return static_cast<std::size_t>(std::ranges::count(plan.runs, state, &RunStatus::state));
}

std::size_t runs_to_make(const StudyPlan& plan) {
  return count_where(plan.runs, [&](const RunStatus& run) { return is_to_make(plan, run); });
}

std::size_t points_that_cannot_run(const StudyPlan& plan) {
  return count_where(plan.expansion.points,
                     [](const PlannedPoint& planned) { return !planned.cannot_run.empty(); });
}

std::vector<std::string> other_machine_lines(const StudyPlan& plan) {
  const auto is_open = [](const RunStatus& run) { return run.state != RunState::done; };
  return not_counted_lines(mapped_if(plan.runs, is_open, &RunStatus::other_machine));
}

void add_plan_notes(const StudyPlan& plan, std::vector<std::string>& lines) {
  for (const std::string& note : plan.expansion.unseen) lines.push_back("note: " + note);
  for (const std::string& line : missing_bases(plan.expansion.points)) {
    lines.push_back("warning: " + line);
  }
  for (const Rejected& rejected : plan.rejected) {
    lines.push_back("warning: a record is ignored: " + rejected.reason);
  }
  for (const std::string& line : other_machine_lines(plan)) lines.push_back("note: " + line);
}

std::string other_build_line(const StudyPlan& plan) {
  const auto other = std::ranges::count_if(plan.runs, &RunStatus::other_build);
  if (other == 0) return "";
  const std::string cure = "; --new-build runs them again";
  return plan.spec.programs.empty()
             ? fmt::format("{} of the done runs are of another build{}", other, cure)
             : fmt::format("{} has changed since {} of the done runs{}",
                           plan.spec.programs.size() == 1 ? "the program" : "a program", other,
                           cure);
}

std::string plan_text(const StudyPlan& plan, std::size_t width, std::size_t most) {
  const Spec& spec = plan.spec;
  std::string text = fmt::format(
      "{}: {} x {} of {}, {}\n", spec.name, counted(plan.expansion.points.size(), "point"),
      counted(spec.repeats, "repeat"), spec.workload,
      spec.interleaved ? fmt::format("interleaved (seed {})", spec.seed) : "one after another");
  if (!spec.description.empty()) text += wrapped(spec.description, width, "", 0);
  for (const std::string& line : warnings(plan)) text += wrapped(line, width);
  text += "\n" + point_rows(plan, most);
  const std::size_t to_make = runs_to_make(plan);
  const auto seconds = estimated_seconds(plan);
  text += fmt::format("\n{} of {} runs to do{}{}; records in {}\n", to_make, plan.runs.size(),
                      seconds && to_make > 0 ? ", " + about(*seconds) : "", hindered_text(plan),
                      plan.study.string());
  const std::string other = other_build_line(plan);
  return other.empty() ? text : text + wrapped("warning: " + other, width);
}

Json plan_json(const StudyPlan& plan) {
  Json points = Json::array(), runs = Json::array(), ignored = Json::array();
  for (const PlannedPoint& planned : plan.expansion.points) {
    const Layout& layout = planned.layout;
    points.push_back({{"point", planned.point.text()},
                      {"nodes", layout.nodes},
                      {"ntasks", layout.ntasks},
                      {"cpus_per_task", layout.cpus_per_task},
                      {"gpus", layout.gpus},
                      {"cpus_per_replica", layout.cpus_per_replica},
                      {"cannot_run", planned.cannot_run},
                      {"parameters", to_json(planned.parameters)}});
  }
  for (const RunStatus& status : plan.runs) {
    runs.push_back({{"point", plan.expansion.points[status.run.point].point.text()},
                    {"repeat", status.run.repeat},
                    {"state", to_string(status.state)},
                    {"why", status.why},
                    {"other_build", status.other_build},
                    {"other_machine",
                     status.other_machine.empty() ? Json(nullptr) : Json(status.other_machine)}});
  }
  for (const Rejected& rejected : plan.rejected) ignored.push_back(rejected.reason);
  const auto seconds = estimated_seconds(plan);
  return {{"study", plan.spec.name},
          {"workload", plan.spec.workload},
          {"folder", plan.study.string()},
          {"repeats", plan.spec.repeats},
          {"order", plan.spec.interleaved ? "interleaved" : "sequential"},
          {"seed", plan.spec.seed},
          {"points", points},
          {"runs", runs},
          {"notes", plan.expansion.notes},
          {"ignored", ignored},
          {"seconds_left", seconds ? Json(*seconds) : Json(nullptr)}};
}

std::vector<std::string> resume_lines(const StudyPlan& plan) {
  std::vector<std::string> lines = warnings(plan);
  const std::size_t to_make = runs_to_make(plan);
  lines.push_back(fmt::format("{}: {}, {} done already, {} to do{}", plan.spec.name,
                              counted(plan.runs.size(), "run"), runs_in_state(plan, RunState::done),
                              to_make, hindered_text(plan)));
  if (runs_in_state(plan, RunState::missing) == plan.runs.size() && plan.rejected.empty()) {
    return lines;
  }
  std::map<std::size_t, std::vector<RepeatReason>> reasons;  // by point
  for (const RunStatus& status : plan.runs) {
    // Those of another machine were counted above.
    if (status.state == RunState::done || status.state == RunState::elsewhere) continue;
    reasons[status.run.point].push_back({status.run.repeat, status.why});
  }
  std::size_t listed = 0;
  for (const auto& [point, why] : reasons) {
    if (++listed > kShownPoints) break;
    lines.push_back(fmt::format("to run: {} {}", plan.expansion.points[point].point.text(),
                                summarize_reasons(why)));
  }
  if (reasons.size() > kShownPoints) {
    lines.push_back(fmt::format("and {}", counted(reasons.size() - kShownPoints, "more point")));
  }
  return lines;
}

std::string summarize_reasons(std::vector<RepeatReason> reasons, std::string_view colon) {
  std::ranges::stable_sort(reasons, {}, &RepeatReason::repeat);
  std::vector<SameReason> groups;
  for (const RepeatReason& each : reasons) {
    const auto at = each.element.empty() ? std::string::npos : each.why.find(each.element);
    const bool has_number = at != std::string::npos;
    const std::string before = each.why.substr(0, at),
                      after = has_number ? each.why.substr(at + each.element.size()) : "";
    auto group = std::ranges::find_if(groups, [&](const SameReason& known) {
      return known.before == before && known.after == after && known.elements.empty() != has_number;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {before, after, {}, {}});
    group->repeats.push_back(each.repeat);
    if (has_number) group->elements.push_back(each.element);
  }
  std::vector<std::string> texts;
  for (const SameReason& group : groups) {
    texts.push_back(fmt::format("repeat{} {}{}{}{}{}", group.repeats.size() == 1 ? "" : "s",
                                format_list(group.repeats), colon, group.before,
                                format_list(group.elements), group.after));
  }
  return join(texts, "; ");
}

}  // namespace paceline

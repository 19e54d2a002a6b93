#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/plan/design.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::string percent(double share) {
  return share < 0.1 ? fmt::format("{:.2g} %", share * 100) : fmt::format("{:.0f} %", share * 100);
}

// Of an option: "1.5%".
std::string option_percent(double share) {
  return fmt::format("{:g}%", share * 100);
}

std::string hours_text(const Design& design, int rounds) {
  const char* unit = design.request.on_cores ? "core-hours" : "GPU-hours";
  if (!design.hours_per_round) return fmt::format("{} unknown, as no pilot ran these points", unit);
  std::string text = fmt::format("{:.3g} {}", *design.hours_per_round * rounds, unit);
  if (design.points_without_hours > 0) {
    text += fmt::format(" without {}, which the pilot did not run",
                        counted(design.points_without_hours, "point"));
  }
  return text;
}

std::string levels_text(const Design& design, std::size_t width) {
  if (design.is_stated) {
    return wrapped(
        fmt::format("noise: equal runs of a session vary by {} (stated)", percent(design.assumed)),
        width);
  }
  std::vector<std::vector<std::string>> rows = {{"level", "sd", "degrees of freedom", ""}};
  for (const Level& level : design.noise.levels) {
    const bool known = level.sd.has_value() && level.degrees_of_freedom > 0;
    rows.push_back({level.name, level.sd ? percent(*level.sd) : "unknown",
                    known ? fmt::format("{:.0f}", level.degrees_of_freedom) : "", level.remark});
  }
  return aligned(rows, 1, width);
}

std::string as_it_is(const Design& design) {
  const DesignRequest& request = design.request;
  const std::string gate = fmt::format("gate --ab --rounds {} --threshold {}", request.rounds,
                                       option_percent(request.threshold));
  if (!design.seen) {
    return fmt::format("{} cannot see {}, nor any change below 170 %", gate,
                       percent(request.detect));
  }
  return *design.seen > request.detect
             ? fmt::format("{} cannot see {}: it sees {}", gate, percent(request.detect),
                           percent(*design.seen))
             : fmt::format("{} sees {}, and so {}", gate, percent(*design.seen),
                           percent(request.detect));
}

// Runs that stand out.
std::string outlying_text(const Design& design) {
  if (!design.is_stated && design.noise.runs == 0) {
    return "assumed: no run stands out of the others; the pilot has too few rounds to show any";
  }
  if (!design.is_stated) {
    return fmt::format(
        "{} of {} of the pilot stand out of the others; planned with {} of the runs, as many as it "
        "leaves open (80 %): a gate leaves their rounds aside",
        design.noise.outlying, counted(design.noise.runs, "run"), percent(design.outlying));
  }
  std::string text =
      "assumed: times vary as stated and no run stands out of the others; rounds are independent";
  if (design.power_if_some_stand_out) {
    text += fmt::format("; if 5 % of runs take far longer, the power of these rounds is {}",
                        percent(*design.power_if_some_stand_out));
  }
  return text;
}

std::string needed(const Design& design) {
  if (design.rounds == 0) {
    return fmt::format(
        "more than {} rounds: this noise hides {} from rounds side by side; a "
        "quieter machine helps, or a larger change to detect",
        kMostRounds, percent(design.request.detect));
  }
  std::string text =
      fmt::format("--threshold {} --rounds {}: {} of both builds", option_percent(design.threshold),
                  design.rounds, counted(design.runs, "run"));
  text += ", " + hours_text(design, design.rounds);
  text += "; up to twice that, as points that do not pass are run again";
  if (!design.is_stated && design.rounds_as_estimated < design.rounds) {
    text += fmt::format("; {} rounds if the noise is as estimated", design.rounds_as_estimated);
  }
  return text;
}

std::string sequel(const Design& design) {
  if (design.equal.decided < 0.9 || design.slower.decided < 0.9) {
    return fmt::format("a gate until it is decided would often not be so within {} rounds",
                       kMostRoundsUntilDecided);
  }
  return fmt::format(
      "--threshold {} --max-rounds {}, until it is decided: on average {:.1f} rounds of a point "
      "that is "
      "equal, {:.1f} of one slower by {} (simulated)",
      option_percent(design.threshold), kMostRoundsUntilDecided, design.equal.rounds,
      design.slower.rounds, percent(design.request.detect));
}

std::string sessions_text(const Design& design, std::size_t width) {
  if (design.sessions.empty()) {
    return wrapped("stored sessions: not planned, as how sessions differ is not known (" +
                       design.noise.level("session").remark + "); a pilot on 3 days or more shows",
                   width);
  }
  std::vector<std::vector<std::string>> rows = {
      {"runs a session", "sessions a side", "runs in all",
       design.request.on_cores ? "core-hours" : "GPU-hours"}};
  for (const SessionDesign& each : design.sessions) {
    const bool known = each.sessions > 0;
    rows.push_back({std::to_string(each.repeats),
                    known ? std::to_string(each.sessions) : fmt::format("> {}", kMostRounds),
                    known ? std::to_string(each.runs) : "",
                    known && each.hours ? fmt::format("{:.3g}", *each.hours) : ""});
  }
  return wrapped(fmt::format("stored sessions, --threshold {}: nights of each side",
                             option_percent(design.threshold)),
                 width) +
         aligned(rows, 0, width);
}

Json to_json(const SequentialOutcome& sequel) {
  return {{"mean_rounds", sequel.rounds},
          {"decided", sequel.decided},
          {"regression", sequel.regression}};
}

}  // namespace

std::string design_text(const Design& design, std::size_t width) {
  const DesignRequest& request = design.request;
  std::string text = wrapped(
      printable(fmt::format("plan for {}: {} of {}; a change of time of {} with {} power, by the "
                            "gate's own tests",
                            request.study, counted(request.points.size(), "point"),
                            request.workload, percent(request.detect), percent(request.power))),
      width);
  text += '\n' + levels_text(design, width);
  if (!design.is_stated) {
    text += wrapped(printable(fmt::format(
                        "planned with {} a run: the noisiest point, {}, has {}, and the pilot "
                        "leaves open that much (80 %)",
                        percent(design.assumed), design.noisiest, percent(design.sd))),
                    width);
  }
  if (design.noise.is_of_published) {
    text +=
        wrapped("the pilot has published or imported records, whose rounds nobody recorded", width);
  }
  text += wrapped(outlying_text(design), width);
  for (const std::string& note : design.noise.notes) text += wrapped(note, width);
  text += '\n' + wrapped(as_it_is(design), width, "as it is: ");
  text += wrapped(needed(design), width, "needed: ");
  text += wrapped(sequel(design), width, "or: ");
  text += '\n' + sessions_text(design, width);
  return text;
}

std::string design_json(const Design& design) {
  const DesignRequest& request = design.request;
  Json levels = Json::array(), sessions = Json::array();
  for (const Level& level : design.noise.levels) {
    levels.push_back({{"level", level.name},
                      {"sd", number_or_null(level.sd)},
                      {"degrees_of_freedom", level.degrees_of_freedom},
                      {"remark", level.remark}});
  }
  for (const SessionDesign& each : design.sessions) {
    const bool known = each.sessions > 0;
    sessions.push_back({{"repeats", each.repeats},
                        {"sessions", known ? Json(each.sessions) : Json(nullptr)},
                        {"runs", known ? Json(each.runs) : Json(nullptr)},
                        {"hours", known ? number_or_null(each.hours) : Json(nullptr)}});
  }
  const bool known = design.rounds > 0;
  const Json hours = design.hours_per_round && known ? Json(*design.hours_per_round * design.rounds)
                                                     : Json(nullptr);
  const Json document = {
      {"schema", 1},
      {"study", request.study},
      {"points", request.points},
      {"detect", request.detect},
      {"power", request.power},
      {"noise_is_stated", design.is_stated},
      {"levels", levels},
      {"sd", design.sd},
      {"sd_planned_with", design.assumed},
      {"noisiest", design.noisiest},
      {"pilot_runs", design.noise.runs},
      {"pilot_runs_outlying", design.noise.outlying},
      {"outlying_planned_with", design.outlying},
      {"power_if_5_percent_stand_out", number_or_null(design.power_if_some_stand_out)},
      {"hours_are", request.on_cores ? "core-hours" : "GPU-hours"},
      {"points_without_hours", design.points_without_hours},
      {"as_it_is",
       {{"rounds", request.rounds},
        {"threshold", request.threshold},
        {"sees", number_or_null(design.seen)}}},
      {"needed",
       {{"threshold", design.threshold},
        {"rounds", known ? Json(design.rounds) : Json(nullptr)},
        {"runs", known ? Json(design.runs) : Json(nullptr)},
        {"hours", hours}}},
      {"until_decided",
       {{"max_rounds", kMostRoundsUntilDecided},
        {"equal", to_json(design.equal)},
        {"slower", to_json(design.slower)}}},
      {"sessions", sessions},
      {"notes", design.noise.notes}};
  return json_text(document, 2) + '\n';
}

}  // namespace paceline

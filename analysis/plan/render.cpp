#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/document/columns.h"
#include "analysis/plan/design.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::string percent(double share) {
  return share < 0.1 ? fmt::format("{:.2g} %", share * 100) : fmt::format("{:.0f} %", share * 100);
}

// As an option's value: "1.5%".
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

Table levels_table(const std::vector<Level>& levels) {
  using Row = const Level&;
  const auto degrees = [](Row r) {
    const bool is_known = r.sd.has_value() && r.degrees_of_freedom > 0;
    return Cell{is_known ? fmt::format("{:.0f}", r.degrees_of_freedom) : "", r.degrees_of_freedom};
  };
  return ColumnsOf<Level>()
      .text("level", "level", &Level::name)
      .real("sd", "sd",
            [](Row r) {
              return r.sd ? Cell{percent(*r.sd), r.sd} : Cell{"unknown"};
            })
      .real("degrees_of_freedom", "degrees of\nfreedom", degrees)
      .text("remark", "remark", &Level::remark)
      .table(levels, "levels");
}

// What the gate detects as requested.
std::string requested_text(const Design& design) {
  const DesignRequest& request = design.request;
  const std::string gate = fmt::format("gate --ab --rounds {} --threshold {}", request.rounds,
                                       option_percent(request.threshold));
  if (!design.seen) {
    return fmt::format("{} cannot see {}, nor any change below 170 %", gate,
                       percent(request.detect));
  }
  constexpr double kAsMuch = 1.005;  // a difference that three digits do not show
  return *design.seen > kAsMuch * request.detect
             ? fmt::format("{} cannot see {}: it sees {:.3g} %", gate, percent(request.detect),
                           100 * *design.seen)
             : fmt::format("{} sees {}, and so {}", gate, percent(*design.seen),
                           percent(request.detect));
}

// What the plan assumes about outliers.
std::string outlying_text(const Design& design) {
  if (!design.is_stated && design.noise.runs == 0) {
    return "assumed: no outliers, as the pilot has too few rounds to show any";
  }
  if (!design.is_stated) {
    return fmt::format(
        "outliers: {} of {} of the pilot; planned with {} of runs, whose rounds a gate leaves "
        "aside; with {}, the upper bound of the pilot (80 %), it takes {} rounds",
        design.noise.outlying, counted(design.noise.runs, "run"), percent(design.outlying),
        percent(design.outlying_at_most),
        design.rounds_at_most > 0 ? std::to_string(design.rounds_at_most)
                                  : fmt::format("more than {}", kMostRounds));
  }
  std::string text = "assumed: times vary as stated, without outliers, and rounds are independent";
  if (design.power_if_some_stand_out) {
    text += fmt::format("; if 5 % of runs take far longer, the power of these rounds is {}",
                        percent(*design.power_if_some_stand_out));
  }
  return text;
}

// Rounds and cost that detect the requested change.
std::string needed_text(const Design& design) {
  if (design.rounds == 0) {
    return fmt::format(
        "more than {} rounds: choose a larger --detect than {}, or a quieter machine", kMostRounds,
        percent(design.request.detect));
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

// Rounds of a gate that runs until it is decided.
std::string sequential_text(const Design& design) {
  if (design.equal.decided < 0.9 || design.slower.decided < 0.9) {
    return fmt::format("gate --until-decided would often stay undecided within {} rounds",
                       kMostRoundsUntilDecided);
  }
  return fmt::format(
      "--until-decided --threshold {} --max-rounds {}: on average {:.1f} rounds for an equal "
      "point, {:.1f} for one slower by {} (simulated)",
      option_percent(design.threshold), kMostRoundsUntilDecided, design.equal.rounds,
      design.slower.rounds, percent(design.request.detect));
}

Section sessions_section(const Design& design) {
  Section section;
  using Row = const SessionDesign&;
  const auto if_any = [](Row r, const Cell& cell) { return r.sessions > 0 ? cell : Cell{}; };
  section.table =
      ColumnsOf<SessionDesign>()
          .whole("repeats", "runs a\nsession", &SessionDesign::repeats)
          .real("sessions", "sessions\na side",
                [](Row r) {
                  return r.sessions > 0 ? whole(r.sessions)
                                        : Cell{fmt::format("> {}", kMostRounds)};
                })
          .set(&Column::is_whole, true)
          .real("runs", "runs\nin all", [=](Row r) { return if_any(r, whole(r.runs)); })
          .set(&Column::is_whole, true)
          .real("hours", design.request.on_cores ? "core-\nhours" : "GPU-\nhours",
                [=](Row r) {
                  return r.hours ? if_any(r, {fmt::format("{:.3g}", *r.hours), r.hours}) : Cell{};
                })
          .table(design.sessions, "sessions");
  section.headline = design.sessions.empty()
                         ? "stored sessions: not planned, as how sessions differ is not known (" +
                               design.noise.level("session").remark +
                               "); a pilot on 3 days or more shows"
                         : fmt::format("stored sessions, --threshold {}: nights of each side",
                                       option_percent(design.threshold));
  return section;
}

Json to_json(const SequentialOutcome& outcome) {
  return {{"mean_rounds", outcome.rounds},
          {"decided", outcome.decided},
          {"regression", outcome.regression}};
}

}  // namespace

Document design_document(const Design& design) {
  const DesignRequest& request = design.request;
  Document document{.name = "plan", .is_brief = true};
  document.title = fmt::format(
      "plan for {}: {} of {}; a change of time of {} with {} power, by the gate's own tests",
      request.study, counted(request.points.size(), "point"), request.workload,
      percent(request.detect), percent(request.power));
  Section answer, noise{.table = levels_table(design.noise.levels), .shown = Visibility::in_detail};
  answer.findings = {"as it is: " + requested_text(design), "needed: " + needed_text(design),
                     "or: " + sequential_text(design)};
  answer.caveats = design.noise.notes;
  noise.table.in_text = !design.is_stated;
  if (design.is_stated) {
    answer.findings.emplace_back(
        fmt::format("noise: equal runs of a session vary by {} (stated)", percent(design.assumed)));
  } else {
    answer.findings.emplace_back(
        fmt::format("noise: planned with {} a run, the upper bound (80 %) of the noisiest point, "
                    "{}, which has {}",
                    percent(design.assumed), design.noisiest, percent(design.sd)));
  }
  if (design.noise.is_of_published) {
    answer.findings.emplace_back(
        "the pilot has published or imported records, which state no rounds");
  }
  answer.findings.emplace_back(outlying_text(design));
  document.sections = {answer, noise, sessions_section(design)};
  const bool known = design.rounds > 0;
  const Json hours = design.hours_per_round && known ? Json(*design.hours_per_round * design.rounds)
                                                     : Json(nullptr);
  document.facts =
      make_facts({{"study", request.study},
                  {"points", request.points},
                  {"detect", request.detect},
                  {"power", request.power},
                  {"noise_is_stated", design.is_stated},
                  {"sd", design.sd},
                  {"sd_planned_with", design.assumed},
                  {"noisiest", design.noisiest},
                  {"pilot_runs", design.noise.runs},
                  {"pilot_runs_outlying", design.noise.outlying},
                  {"outlying_planned_with", design.outlying},
                  {"outlying_at_most", design.outlying_at_most},
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
                  {"notes", design.noise.notes}});
  return document;
}

}  // namespace paceline

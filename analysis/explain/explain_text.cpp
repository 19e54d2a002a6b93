#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/aligned.h"
#include "analysis/explain/explain.h"
#include "engine/core/json.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"
#include "engine/core/utf8.h"

namespace paceline {

namespace {

std::string sentence_line(const std::vector<std::string>& parts) {
  return printable(join(parts, ": ")) + '\n';
}

std::string percent_if_known(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", *share * 100) : "";
}

std::string signed_percent(const std::optional<double>& share) {
  return share ? fmt::format("{:+.1f} %", *share * 100) : "";
}

std::vector<std::string> cells_of(const PointExplanation& point, bool to_goal) {
  const SpeedUp* speed_up = point.facts->speed_up;
  std::vector<std::string> cells = {
      point.name, speed_up ? percent_if_known(speed_up->efficiency) : "",
      percent_if_known(point.product), signed_percent(point.residual)};
  const auto factor = [&](double StepEfficiency::*member) {
    cells.push_back(point.step ? fmt::format("{:.3f}", (*point.step).*member) : "");
  };
  factor(&StepEfficiency::input);
  factor(&StepEfficiency::launch);
  factor(&StepEfficiency::transfer);
  factor(&StepEfficiency::serialization);
  factor(&StepEfficiency::load_balance);
  cells.push_back(point.computation_scaling ? fmt::format("{:.3f}", *point.computation_scaling)
                                            : "");
  if (to_goal) {
    cells.push_back(point.samples_to_goal ? fmt::format("{:.3f}", *point.samples_to_goal) : "");
  }
  cells.push_back(point.label);
  return cells;
}

std::string counterfactual_text(const Counterfactual& what) {
  const Estimate& ratio = what.speed_up.estimate;
  std::string text = fmt::format("without {}: {:.3f} times as fast", what.without, ratio.value);
  if (ratio.interval) {
    text += fmt::format(" [{:.3f}, {:.3f}]", ratio.interval->low, ratio.interval->high);
  }
  if (what.cost == "overlap") {
    return text + fmt::format(": it saves {:.1f} % of the time", (1 - ratio.value) * 100);
  }
  return text + fmt::format(": it costs {:.1f} % of the time", (1 - 1 / ratio.value) * 100);
}

// Three digits, however small: at 128 replicas a coherence of 0.0002 matters.
std::string share_text(double value) {
  constexpr double kNothing = 1e-9;
  return fmt::format("{:.3g}", std::abs(value) < kNothing ? 0.0 : value);
}

std::string fitted_text(const Fitted& fit) {
  if (!fit.interval) return share_text(fit.value);
  return fmt::format("{} [{}, {}]", share_text(fit.value), share_text(fit.interval->low),
                     share_text(fit.interval->high));
}

std::string ladder_text(const LadderExplanation& ladder) {
  std::vector<std::string> laws;
  if (ladder.amdahl) laws.push_back("Amdahl, serial share " + fitted_text(*ladder.amdahl));
  if (ladder.gustafson) laws.push_back("Gustafson, serial share " + fitted_text(*ladder.gustafson));
  if (ladder.usl) {
    laws.push_back(fmt::format("USL, contention {}, coherence {}",
                               fitted_text(ladder.usl->contention),
                               fitted_text(ladder.usl->coherence)));
  }
  std::string text;
  if (!laws.empty()) {
    text = sentence_line({(ladder.name.empty() ? "" : ladder.name + ": ") + join(laws, "; ")});
  }
  for (const std::string& sentence : ladder.verdict) text += "  " + sentence_line({sentence});
  return text;
}

std::vector<std::string> legend(const Explanation& explanation) {
  std::vector<std::string> notes = explanation.notes;
  const bool any =
      std::any_of(explanation.points.begin(), explanation.points.end(),
                  [](const PointExplanation& point) { return point.step.has_value(); });
  if (!any) return notes;
  notes.insert(
      notes.begin(),
      {fmt::format("product: of the five shares of the step over those of the base, times "
                   "computation scaling{}; rest: measured efficiency over the product, what is "
                   "spent outside of steps",
                   explanation.study.goal.empty() ? "" : " and samples to goal"),
       "transfer: what even the last rank waits for; serialization and load balance: "
       "waiting for ranks that are late; launch: between phases, on the host",
       "laws: least squares of relative errors; [low, high] is the 95 % interval of the fit"});
  if (!explanation.study.goal.empty()) {
    notes[2] =
        "samples to goal: what the base needed over what this point did: larger global batches "
        "often need more";
  }
  return notes;
}

Json number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_of(const Fitted& fit) {
  return {{"value", fit.value},
          {"low", fit.interval ? Json(fit.interval->low) : Json(nullptr)},
          {"high", fit.interval ? Json(fit.interval->high) : Json(nullptr)}};
}

Json json_of(const Costs& lost) {
  return {{"input", lost.input},
          {"communication", lost.communication},
          {"straggler", lost.straggler},
          {"launch", lost.launch},
          {"compute", lost.compute}};
}

Json json_of(const Counterfactual& what) {
  const Estimate& ratio = what.speed_up.estimate;
  return {{"without", what.cost},
          {"speed_up", ratio.value},
          {"speed_up_low", ratio.interval ? Json(ratio.interval->low) : Json(nullptr)},
          {"speed_up_high", ratio.interval ? Json(ratio.interval->high) : Json(nullptr)}};
}

Json json_of(const PointExplanation& point) {
  const SpeedUp* speed_up = point.facts->speed_up;
  Json json = {{"point", point.name},
               {"gpus", point.facts->run().gpus},
               {"label", point.label.empty() ? Json(nullptr) : Json(point.label)},
               {"because", point.because},
               {"efficiency", speed_up ? Json(speed_up->efficiency) : Json(nullptr)},
               {"product", number(point.product)},
               {"residual", number(point.residual)},
               {"computation_scaling", number(point.computation_scaling)},
               {"samples_to_goal", number(point.samples_to_goal)},
               {"lost", json_of(point.lost)},
               {"counterfactuals", Json::array()}};
  if (point.step) {
    json["input"] = point.step->input;
    json["launch"] = point.step->launch;
    json["transfer"] = point.step->transfer;
    json["serialization"] = point.step->serialization;
    json["load_balance"] = point.step->load_balance;
  }
  for (const Counterfactual& what : point.counterfactuals) {
    json["counterfactuals"].push_back(json_of(what));
  }
  return json;
}

Json json_of(const LadderExplanation& ladder) {
  Json json = {{"name", ladder.name}, {"verdict", ladder.verdict}};
  if (ladder.amdahl) json["amdahl_serial_share"] = json_of(*ladder.amdahl);
  if (ladder.gustafson) json["gustafson_serial_share"] = json_of(*ladder.gustafson);
  if (ladder.usl) {
    json["usl_contention"] = json_of(ladder.usl->contention);
    json["usl_coherence"] = json_of(ladder.usl->coherence);
    json["usl_peak_replicas"] = ladder.usl->peak > 0 ? Json(ladder.usl->peak) : Json(nullptr);
  }
  return json;
}

}  // namespace

std::string explanation_text(const Explanation& explanation) {
  std::string text =
      sentence_line({fmt::format("{}; base {}", explanation.title, explanation.base)}) + '\n';
  std::vector<std::vector<std::string>> rows = {{"point", "efficiency", "product", "rest", "input",
                                                 "launch", "transfer", "serialization",
                                                 "load balance", "computation scaling"}};
  const bool to_goal = !explanation.study.goal.empty();
  if (to_goal) rows.front().emplace_back("samples to goal");
  rows.front().emplace_back("label");
  for (const PointExplanation& point : explanation.points) {
    rows.push_back(cells_of(point, to_goal));
  }
  text += aligned(rows, 1) + '\n';
  bool any = false;
  for (const PointExplanation& point : explanation.points) {
    if (!point.label.empty()) {
      text += sentence_line({point.name, point.label, point.because});
    }
    for (const Counterfactual& what : point.counterfactuals) {
      text += sentence_line({point.name, counterfactual_text(what)});
    }
    any = any || !point.label.empty() || !point.counterfactuals.empty();
  }
  if (any) text += '\n';
  for (const LadderExplanation& ladder : explanation.ladders) text += ladder_text(ladder);
  if (!explanation.ladders.empty()) text += '\n';
  for (const std::string& note : legend(explanation)) text += "- " + sentence_line({note});
  return text;
}

std::string explanations_json(const std::vector<Explanation>& explanations) {
  Json all = Json::array();
  for (const Explanation& explanation : explanations) {
    Json points = Json::array(), ladders = Json::array();
    for (const PointExplanation& point : explanation.points) points.push_back(json_of(point));
    for (const LadderExplanation& ladder : explanation.ladders) ladders.push_back(json_of(ladder));
    all.push_back({{"title", explanation.title},
                   {"base", explanation.base},
                   {"points", points},
                   {"ladders", ladders},
                   {"notes", explanation.notes}});
  }
  const Json document = {{"schema", 1}, {"explanations", all}};
  return json_text(document, 2) + '\n';
}

}  // namespace paceline

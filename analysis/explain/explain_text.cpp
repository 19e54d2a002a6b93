#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/explain/explain.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::string percent_if_known(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", *share * 100) : "";
}

std::string signed_percent(const std::optional<double>& share) {
  return share ? fmt::format("{:+.1f} %", *share * 100) : "";
}

// In brackets, where the network is worse than the base's.
std::string bracketed_efficiency(const SpeedUp* speed_up) {
  if (speed_up == nullptr || !speed_up->efficiency) return "";
  const std::string text = percent_if_known(speed_up->efficiency);
  return speed_up->lost ? "(" + text + ")" : text;
}

std::vector<std::string> make_cells(const PointExplanation& point, bool to_goal) {
  const SpeedUp* speed_up = point.facts->speed_up;
  std::vector<std::string> cells = {point.name, bracketed_efficiency(speed_up),
                                    percent_if_known(point.product),
                                    signed_percent(point.residual)};
  const auto factor = [&](double StepEfficiency::*member, const char* bound = "") {
    const bool is_bound = point.step && point.step->is_bound;
    cells.push_back(
        point.step ? fmt::format("{}{:.3f}", is_bound ? bound : "", (*point.step).*member) : "");
  };
  factor(&StepEfficiency::input);
  factor(&StepEfficiency::launch);
  factor(&StepEfficiency::transfer, "≥");
  factor(&StepEfficiency::serialization, "≤");
  factor(&StepEfficiency::load_balance);
  cells.push_back(point.computation_scaling ? fmt::format("{:.3f}", *point.computation_scaling)
                                            : "");
  if (to_goal) {
    cells.push_back(point.samples_to_goal ? fmt::format("{:.3f}", *point.samples_to_goal) : "");
  }
  cells.push_back(point.by_means.empty() ? point.label : point.by_means + "?");
  return cells;
}

std::string counterfactual_text(const Counterfactual& what) {
  const std::string text = fmt::format("without {}: ", what.without);
  const Judged& ratio = what.speed_up;
  // Of the time with the cost; what overlap saves is of the time without it.
  const bool saves = what.cost == "overlap" ? ratio.value() < 1 : false;
  const Judged share = ratio.transformed(
      [saves](double value) { return 100 * (saves ? 1 - value : 1 - 1 / value); });
  return ratio.match(
      [&](const Known& known) {
        const std::string with = fmt::format("{}{:.3f} times as fast [{:.3f}, {:.3f}]", text,
                                             known.value, known.interval.low, known.interval.high);
        if (!ratio.is_above(1) && !ratio.is_below(1)) {
          return with + ", which cannot be distinguished from no difference";
        }
        if (!saves && ratio.is_below(1)) return with + ": it is not a cost here";
        return share.match(
            [&](const Known& points) {
              return fmt::format("{}: it {} {:.1f} % of the time [{:.1f}, {:.1f}]", with,
                                 saves ? "saves" : "costs", points.value, points.interval.low,
                                 points.interval.high);
            },
            [&](double, const WeakEvidence&) { return with; });
      },
      [&](double value, const WeakEvidence& why) {
        return fmt::format("{}{:.3f} times as fast; {}, so how much of it is noise is not known",
                           text, value, why.text());
      });
}

// Three digits, however small: at 128 replicas a coherence of 0.0002 matters.
std::string share_text(double value) {
  constexpr double kNothing = 1e-9;
  return fmt::format("{:.3g}", std::abs(value) < kNothing ? 0.0 : value);
}

std::string fitted_text(const Known& fit) {
  return fmt::format("{} [{}, {}]", share_text(fit.value), share_text(fit.interval.low),
                     share_text(fit.interval.high));
}

// "Amdahl, serial share 0.173 [0.154, 0.192], off by up to 2.1 %".
std::string law_text(const char* law, const std::string& found, double off) {
  constexpr double kFarOff = 0.1;
  if (off > kFarOff) return fmt::format("{} does not fit (off by up to {:.0f} %)", law, off * 100);
  return fmt::format("{}, {}, off by up to {:.1f} %", law, found, off * 100);
}

std::vector<std::string> make_sentences(const SeriesExplanation& series) {
  std::vector<std::string> laws;
  if (series.amdahl) {
    laws.push_back(law_text("Amdahl", "serial share " + fitted_text(series.amdahl->value),
                            series.amdahl->off));
  }
  if (series.gustafson) {
    laws.push_back(law_text("Gustafson", "serial share " + fitted_text(series.gustafson->value),
                            series.gustafson->off));
  }
  if (series.usl) {
    laws.push_back(
        law_text("USL",
                 fmt::format("contention {}, coherence {}", fitted_text(series.usl->contention),
                             fitted_text(series.usl->coherence)),
                 series.usl->off));
  }
  std::vector<std::string> sentences;
  bool apply = series.sizes > 1;  // one size fits any law
  for (const Finding& finding : series.verdict) {
    sentences.push_back(finding.text);
    apply = apply && finding.kind != FindingKind::slower_than_one;
  }
  const std::string name = series.name.empty() ? "" : series.name + ": ";
  if (apply && !laws.empty()) sentences.push_back(name + "fits: " + join(laws, "; "));
  if (apply && series.unfitted) {
    sentences.push_back(name + "no law is fitted, as the noise of rows of " +
                        series.unfitted.text() + " is not known");
  }
  return sentences;
}

std::vector<std::string> make_sentences(const PointExplanation& point) {
  std::vector<std::string> sentences;
  if (!point.because.empty()) {
    const std::string label = point.by_means.empty() ? point.label : point.by_means + "?";
    sentences.push_back(point.name + (label.empty() ? ": " : ": " + label + ": ") + point.because);
  }
  for (const Counterfactual& what : point.counterfactuals) {
    sentences.push_back(point.name + ": " + counterfactual_text(what));
  }
  return sentences;
}

std::vector<std::string> legend(const Explanation& explanation) {
  std::vector<std::string> notes = explanation.notes;
  const bool any =
      std::any_of(explanation.points.begin(), explanation.points.end(),
                  [](const PointExplanation& point) { return point.step.has_value(); });
  if (!any) return notes;
  const bool is_bound =
      std::any_of(explanation.points.begin(), explanation.points.end(),
                  [](const PointExplanation& point) { return point.step && point.step->is_bound; });
  std::vector<std::string> meanings = {
      fmt::format("product: the factors multiplied, over those of the base{}; it should be the "
                  "efficiency, and rest is by how much it is not: {}",
                  explanation.study.goal.empty() ? "" : ", times samples to goal",
                  explanation.comparison.rates ? "time that no phase accounts for"
                                               : "time outside of steps"),
      fmt::format("transfer: time in which all ranks wait for communication{}; serialization, "
                  "load balance: for ranks that are late; launch: between phases, on the host",
                  is_bound ? " (≥, ≤: only a bound, as the samples of the steps are not beside "
                             "the records)"
                           : ""),
      "a loss is labelled where it can be distinguished from noise (95 %); \"?\" marks what only "
      "the means "
      "of too few or disturbed runs say"};
  const bool has_laws =
      std::ranges::any_of(explanation.series, [](const SeriesExplanation& series) {
        return series.amdahl || series.gustafson || series.usl;
      });
  if (has_laws) {
    meanings.emplace_back(
        "fits: least squares of relative errors; [low, high] is the 95 % interval, of the noise of "
        "all rows and of their base, or of how far the law is off if that is far more");
  }
  if (!explanation.study.goal.empty()) {
    meanings.emplace_back(
        "samples to goal: what the base needed over what this point did: larger global batches "
        "often need more");
  }
  notes.insert(notes.begin(), meanings.begin(), meanings.end());
  return notes;
}

Json to_json(const Known& known) {
  return {{"value", known.value}, {"low", known.interval.low}, {"high", known.interval.high}};
}

// {"NAME", "NAME_low" or "low", ...}; null where it is not known.
Json to_json(const Judged& judged, const char* name, const std::string& prefix = "") {
  const auto made = [&](double value, const Json& low, const Json& high) {
    return Json{{name, value}, {prefix + "low", low}, {prefix + "high", high}};
  };
  return judged.match(
      [&](const Known& known) {
        return made(known.value, known.interval.low, known.interval.high);
      },
      [&](double value, const WeakEvidence&) { return made(value, nullptr, nullptr); });
}

Json to_json(const std::vector<Finding>& findings) {
  Json all = Json::array();
  for (const Finding& finding : findings) {
    all.push_back({{"kind", to_string(finding.kind)}, {"text", finding.text}});
  }
  return all;
}

Json to_json(const Counterfactual& what) {
  Json json = to_json(what.speed_up, "speed_up", "speed_up_");
  json["without"] = what.cost;
  return json;
}

Json to_json(const PointExplanation& point) {
  const SpeedUp* speed_up = point.facts->speed_up;
  Json json = {{"point", point.name},
               {"gpus", point.facts->run().gpus},
               {"label", point.label.empty() ? Json(nullptr) : Json(point.label)},
               {"label_by_means", point.by_means.empty() ? Json(nullptr) : Json(point.by_means)},
               {"because", point.because},
               {"efficiency", speed_up ? Json(*speed_up->efficiency) : Json(nullptr)},
               {"product", number_or_null(point.product)},
               {"residual", number_or_null(point.residual)},
               {"computation_scaling", number_or_null(point.computation_scaling)},
               {"samples_to_goal", number_or_null(point.samples_to_goal)},
               {"lost", point.lost ? to_json(*point.lost, "share") : Json(nullptr)},
               {"losses", Json::object()},
               {"counterfactuals", Json::array()}};
  for (const Loss& loss : point.losses) json["losses"][loss.label] = to_json(loss.share, "share");
  if (point.step) {
    json["transfer_is_bound"] = point.step->is_bound;
    json["input"] = point.step->input;
    json["launch"] = point.step->launch;
    json["transfer"] = point.step->transfer;
    json["serialization"] = point.step->serialization;
    json["load_balance"] = point.step->load_balance;
  }
  for (const Counterfactual& what : point.counterfactuals) {
    json["counterfactuals"].push_back(to_json(what));
  }
  return json;
}

Json to_json(const SeriesExplanation& series) {
  Json json = {{"name", series.name}, {"findings", to_json(series.verdict)}};
  if (series.amdahl) json["amdahl_serial_share"] = to_json(series.amdahl->value);
  if (series.gustafson) json["gustafson_serial_share"] = to_json(series.gustafson->value);
  if (series.usl) {
    json["usl_contention"] = to_json(series.usl->contention);
    json["usl_coherence"] = to_json(series.usl->coherence);
    json["usl_peak_replicas"] = series.usl->peak ? Json(series.usl->peak->value) : Json(nullptr);
  }
  return json;
}

}  // namespace

ExplanationView make_view(const Explanation& explanation) {
  ExplanationView view;
  view.warnings = explanation.study.warnings;
  for (const Finding& finding : explanation.unlike) view.first.push_back(finding.text);
  view.table = {{"point", "efficiency", "product", "rest", "input", "launch", "transfer",
                 "serialization", "load balance", "computation scaling"}};
  const bool to_goal = !explanation.study.goal.empty();
  if (to_goal) view.table.front().emplace_back("samples to goal");
  view.table.front().emplace_back("label");
  const auto append = [](std::vector<std::string>& all, const std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const PointExplanation& point : explanation.points) {
    view.table.push_back(make_cells(point, to_goal));
    append(view.points, make_sentences(point));
  }
  for (const SeriesExplanation& series : explanation.series) {
    append(view.series, make_sentences(series));
  }
  append(view.series, explanation.lacks_cpu);
  for (const Finding& cause : explanation.causes) view.series.push_back(cause.text);
  view.notes = legend(explanation);
  return view;
}

std::string explanation_text(const Explanation& explanation, std::size_t width) {
  const ExplanationView view = make_view(explanation);
  std::string text =
      wrapped(fmt::format("{}; base {}", explanation.title, explanation.base), width) + '\n';
  for (const std::string& warning : view.warnings) text += wrapped("Warning: " + warning, width);
  if (!view.warnings.empty()) text += '\n';
  for (const std::string& sentence : view.first) text += wrapped(sentence, width) + '\n';
  text += aligned(view.table, 1, width) + '\n';
  for (const auto* sentences : {&view.points, &view.series}) {
    for (const std::string& sentence : *sentences) text += wrapped(sentence, width);
    if (!sentences->empty()) text += '\n';
  }
  for (const std::string& note : view.notes) text += wrapped(note, width, "- ");
  return text;
}

std::string explanations_json(const std::vector<Explanation>& explanations) {
  Json all = Json::array();
  for (const Explanation& explanation : explanations) {
    Json points = Json::array(), all_series = Json::array();
    for (const PointExplanation& point : explanation.points) points.push_back(to_json(point));
    for (const SeriesExplanation& series : explanation.series)
      all_series.push_back(to_json(series));
    all.push_back({{"title", explanation.title},
                   {"base", explanation.base},
                   {"points", points},
                   {"series", all_series},
                   {"warnings", explanation.study.warnings},
                   {"unlike_runs", to_json(explanation.unlike)},
                   {"causes", to_json(explanation.causes)},
                   {"cpu_for_communication", explanation.lacks_cpu},
                   {"notes", explanation.notes}});
  }
  const Json document = {{"schema", 2}, {"explanations", all}};
  return json_text(document, 2) + '\n';
}

}  // namespace paceline

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/document/columns.h"
#include "analysis/explain/explain.h"
#include "analysis/plots/plot.h"
#include "analysis/study/labels.h"
#include "analysis/table/table.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// In brackets, where the network is no equal of the base's.
Cell shown_efficiency(const PointExplanation& point) {
  const SpeedUp* speed_up = point.facts->speed_up;
  Cell cell = percent(speed_up ? speed_up->efficiency : std::nullopt);
  if (!cell.text.empty() && point.facts->is_barred()) cell.text = "(" + cell.text + ")";
  return cell;
}

std::string label_text(const PointExplanation& point) {
  return point.by_means.empty() ? point.label : point.by_means + "?";
}

// One size fits any law.
bool laws_apply(const SeriesExplanation& series) {
  return series.sizes > 1 &&
         std::ranges::count(series.verdict, FindingKind::slower_than_one, &Finding::kind) == 0;
}

// Why no law is fitted, of the series that could have one.
std::vector<std::string> unfitted_sentences(const Explanation& explanation) {
  std::map<std::string, std::vector<std::string>> names;
  for (const SeriesExplanation& series : explanation.series) {
    if (series.unfitted && laws_apply(series)) names[series.unfitted.text()].push_back(series.name);
  }
  std::vector<std::string> sentences;
  for (auto& [why, which] : names) {
    std::erase(which, "");
    sentences.push_back(fmt::format("{}{}no law is fitted, as rows of {} do not show their noise",
                                    join_first(2, which), which.empty() ? "" : ": ", why));
  }
  return sentences;
}

std::vector<PointExplanation> points_in_order(const Explanation& explanation) {
  std::vector<PointExplanation> points;
  for (const RowFacts& row :
       reading_order(explanation.study, explanation.comparison, explanation.facts)) {
    for (const PointExplanation& point : explanation.points) {
      if (point.facts->row == row.row) points.push_back(point);
    }
  }
  return points;
}

Table make_rows(const std::vector<PointExplanation>& points) {
  using Row = const PointExplanation&;
  ColumnsOf<PointExplanation> columns;
  const auto add_factor = [&](const char* key, const char* heading, double StepEfficiency::*member,
                              const char* bound = "") {
    columns
        .real(key, heading,
              [=](Row point) {
                if (!point.step) return Cell{};
                Cell cell = number((*point.step).*member, 3);
                if (point.step->is_bound) cell.text.insert(0, bound);
                return cell;
              })
        .detail(1);
  };
  columns.text("point", "point", &PointExplanation::name)
      .whole("gpus", "", [](Row point) { return point.facts->run()->layout.gpus; })
      .programs()
      .real("efficiency", "efficiency", shown_efficiency)
      .text("held_back_by", "held back by", label_text)
      .text("label", "", &PointExplanation::label)
      .programs()
      .text("label_by_means", "", &PointExplanation::by_means)
      .programs()
      .text("because", "", &PointExplanation::because)
      .programs()
      .real("product", "product", [](Row point) { return percent(point.product); })
      .detail(3)
      .real("residual", "rest",
            [](Row point) {
              if (!point.residual) return Cell{};
              return Cell{fmt::format("{:+.1f} %", *point.residual * 100), point.residual};
            })
      .detail(3);
  add_factor("input", "input", &StepEfficiency::input);
  add_factor("launch", "launch", &StepEfficiency::launch);
  add_factor("transfer", "transfer", &StepEfficiency::transfer, "≥");
  add_factor("serialization", "seriali-\nzation", &StepEfficiency::serialization, "≤");
  add_factor("load_balance", "load\nbalance", &StepEfficiency::load_balance);
  return columns
      .real("computation_scaling", "computation\nscaling",
            [](Row point) { return number(point.computation_scaling, 3); })
      .detail(1)
      .real("samples_to_goal", "samples\nto goal",
            [](Row point) { return number(point.samples_to_goal, 3); })
      .detail(1)
      .flag("transfer_is_bound", [](Row point) { return point.step && point.step->is_bound; })
      .table(points, "");  // JSON has more of the points
}

std::string counterfactual_text(const Counterfactual& what) {
  const std::string text = fmt::format("without {}: ", what.without);
  const Judged& ratio = what.speed_up;
  // A share of the time with the cost; for overlap, which saves time, of the time without it.
  const bool saves = what.cost == "overlap" ? ratio.value() < 1 : false;
  const Judged share = ratio.transformed(
      [saves](double value) { return 100 * (saves ? 1 - value : 1 - 1 / value); });
  return ratio.match(
      [&](const Known& known) {
        const std::string with = fmt::format("{}{:.3f} times as fast [{:.3f}, {:.3f}]", text,
                                             known.value, known.interval.low, known.interval.high);
        if (!ratio.is_above(1) && !ratio.is_below(1)) {
          return with + ", no difference beyond the noise";
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
        return fmt::format("{}{:.3f} times as fast; how much of it is noise is not known ({})",
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

std::string usl_text(const UslFit& usl) {
  if (!lies_above(usl.coherence.interval, 0)) {
    return fmt::format("USL {} (coherence {})",
                       lies_below(usl.coherence.interval, 0) ? "does not fit" : "shows no peak",
                       fitted_text(usl.coherence));
  }
  if (!usl.rival.empty()) return fmt::format("USL fits worse than {}", usl.rival);
  return law_text("USL",
                  fmt::format("contention {}, coherence {}", fitted_text(usl.contention),
                              fitted_text(usl.coherence)),
                  usl.off);
}

// How well laws of scaling fit a series.
std::vector<std::string> law_sentences(const SeriesExplanation& series) {
  std::vector<std::string> laws;
  if (series.amdahl) {
    laws.push_back(law_text("Amdahl", "serial share " + fitted_text(series.amdahl->value),
                            series.amdahl->off));
  }
  if (series.gustafson) {
    laws.push_back(law_text("Gustafson", "serial share " + fitted_text(series.gustafson->value),
                            series.gustafson->off));
  }
  if (series.usl) laws.push_back(usl_text(*series.usl));
  std::vector<std::string> sentences;
  const std::string name = series.name.empty() ? "" : series.name + ": ";
  if (laws_apply(series) && !laws.empty()) sentences.push_back(name + "fits: " + join(laws, "; "));
  return sentences;
}

std::vector<std::string> make_sentences(const PointExplanation& point) {
  std::vector<std::string> sentences;
  const std::string quality = point.facts->quality_label();
  const std::string name = point.name + (quality.empty() ? "" : " (" + quality + ")");
  if (!point.because.empty()) {
    const std::string label = label_text(point);
    sentences.push_back(name + (label.empty() ? ": " : ": " + label + ": ") + point.because);
  }
  for (const Counterfactual& what : point.counterfactuals) {
    sentences.push_back(name + ": " + counterfactual_text(what));
  }
  return sentences;
}

// What the largest computation scaling says where it is far above 1. May be empty.
std::string cheaper_compute_note(const Explanation& explanation) {
  if (!explanation.study.causes.are_open) return "";
  constexpr double kFarAbove = 1.1;
  const auto most = std::ranges::max_element(explanation.points, {}, [](const auto& point) {
    return point.computation_scaling.value_or(0);
  });
  if (!(most->computation_scaling.value_or(0) >= kFarAbove)) return "";
  const Costs& costs = most->step->costs;
  if (costs.compute <= 0) return "";
  const double percent_of_step = 100 * costs.compute / costs.in_steps();
  return fmt::format(
      "computation scaling above 1 ({}: {:.3g}, and computing is {:.{}f} % of the step): by the "
      "means, a {} is computed faster than at the base. Caches may hold more, batches may differ, "
      "or work may be done once a step and not for each {}",
      most->name, *most->computation_scaling, percent_of_step, decimals_for(percent_of_step, 2),
      explanation.study.unit.one(), explanation.study.unit.one());
}

std::vector<std::string> legend(const Explanation& explanation) {
  std::vector<std::string> notes;
  const bool any = std::ranges::any_of(
      explanation.points, [](const PointExplanation& point) { return point.step.has_value(); });
  if (!any) return notes;
  const bool is_bound = std::ranges::any_of(explanation.points, [](const PointExplanation& point) {
    return point.step && point.step->is_bound;
  });
  std::vector<std::string> meanings = {
      fmt::format("product: the factors multiplied, over those of the base{}; rest: by how much "
                  "the efficiency differs from it ({})",
                  explanation.study.goal.empty() ? "" : ", times samples to goal",
                  explanation.comparison.rates ? "time that no phase accounts for"
                                               : "time outside of steps"),
      fmt::format("transfer: all ranks wait for communication{}; serialization, load balance: they "
                  "wait for late ranks; launch: the host is between phases",
                  is_bound ? " (≥, ≤: only a bound, without step samples beside the records)" : ""),
      "a label means a loss beyond the noise (95 %); \"?\" marks what only means of too few or "
      "disturbed runs say"};
  const bool has_laws =
      std::ranges::any_of(explanation.series, [](const SeriesExplanation& series) {
        return series.amdahl || series.gustafson || series.usl;
      });
  if (std::string note = cheaper_compute_note(explanation); !note.empty()) {
    meanings.push_back(std::move(note));
  }
  if (has_laws) {
    meanings.emplace_back(
        "fits: least squares of relative errors; the 95 % interval [low, high] covers the noise of "
        "all rows, or how far the law is off where that is far more");
  }
  if (!explanation.study.goal.empty()) {
    meanings.emplace_back(
        "samples to goal: the base's over this point's; larger global batches often need more");
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
  return mapped(findings, [](const Finding& finding) {
    return Json{{"kind", to_string(finding.kind)}, {"text", finding.text}};
  });
}

Json to_json(const Counterfactual& what) {
  Json json = to_json(what.speed_up, "speed_up", "speed_up_");
  json["without"] = what.cost;
  return json;
}

// What the row has no columns for.
void add_losses(Json& row, const PointExplanation& point) {
  row["lost"] = point.lost ? to_json(*point.lost, "share") : Json(nullptr);
  row["losses"] = Json::object();
  for (const Loss& loss : point.losses) row["losses"][loss.label] = to_json(loss.share, "share");
  row["counterfactuals"] = Json::array();
  for (const Counterfactual& what : point.counterfactuals) {
    row["counterfactuals"].push_back(to_json(what));
  }
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

constexpr std::size_t kMostBars = 16;
constexpr double kSeen = 0.004;  // a part of less is no wider than a line
constexpr char kNoise[] = "cannot be distinguished from noise";

std::string drawn_name(const Loss& loss) {
  return loss.share.is_above(0) || loss.share.is_below(0) ? loss.label : kNoise;
}

// In points: what is lost to the name, or gained by it.
double drawn_points(const PointExplanation& point, const std::string& name) {
  double points = 0;
  for (const Loss& loss : point.losses) {
    if (drawn_name(loss) == name) points += 100 * loss.share.value();
  }
  return points;
}

// "6.5 [2.6, 10.3]", where parts are gains "13.0 - 6.5 = 6.5 [2.6, 10.3]": the lengths of the bar
// to the right and to the left, and what they make.
std::string note_text(const PointExplanation& point, const std::vector<std::string>& names) {
  double right = 0, left = 0;
  for (const std::string& name : names) {
    const double points = drawn_points(point, name);
    (points > 0 ? right : left) += points;
  }
  const std::string total = points_text(*point.lost);
  constexpr double kShown = 0.05;
  const bool has_both = right > kShown && left < -kShown;
  return !has_both ? total : fmt::format("{:.1f} - {:.1f} = {}", right, -left, total);
}

bool has_visible_part(const PointExplanation& point) {
  return std::ranges::any_of(point.losses,
                             [](const Loss& loss) { return std::abs(loss.share.value()) > kSeen; });
}

std::vector<const PointExplanation*> shown_points(const Explanation& explanation) {
  std::vector<const PointExplanation*> points;
  for (const PointExplanation& point : explanation.points) {
    if (point.lost && has_visible_part(point)) points.push_back(&point);
  }
  return points;
}

std::string make_subtitle(const std::vector<const PointExplanation*>& points, std::size_t all) {
  std::string text = "right of zero: lost, left: gained; number: lost - gained = the sum";
  if (std::ranges::all_of(points, [](const auto* it) { return it->lost->is_known(); })) {
    text += ", with its 95 % interval";
  }
  if (points.size() < all) text += fmt::format("; the first {} of {}", points.size(), all);
  return text;
}

// Noise last.
std::vector<std::string> drawn_names(const std::vector<const PointExplanation*>& points) {
  std::vector<std::string> names;
  for (const PointExplanation* point : points) {
    for (const Loss& loss : point->losses) {
      const std::string name = drawn_name(loss);
      const bool is_new = std::ranges::find(names, name) == names.end();
      if (is_new && std::abs(loss.share.value()) > kSeen) names.push_back(name);
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kNoise; });
  return names;
}

}  // namespace

Section explanation_section(const Explanation& explanation) {
  const std::vector<PointExplanation> ordered = points_in_order(explanation);
  Section section{.title = fmt::format("{}; base {}", explanation.title, explanation.base),
                  .warnings = explanation.study.warnings,
                  .table = make_rows(ordered),
                  .plots = loss_plots(explanation),
                  .caveats = explanation.notes,
                  .notes = legend(explanation)};
  const auto facts = mapped(ordered, [](const PointExplanation& point) { return *point.facts; });
  fold_rows(facts, explanation.comparison.rates, section.table);
  // Without phases it has what the report has.
  section.table.in_text = std::ranges::count(section.table.columns, true, &Column::shown) > 2;
  Json points = to_json(section.table), all_series = Json::array();
  Section part{.title = "Point by point", .shown = Visibility::in_detail};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    add_losses(points[i], ordered[i]);
    for (std::string& each : make_sentences(ordered[i])) {
      part.findings.emplace_back(std::move(each));
    }
  }
  std::vector<Finding> findings = explanation.unlike;
  std::vector<std::string> laws;
  for (const SeriesExplanation& series : explanation.series) {
    all_series.push_back(to_json(series));
    std::ranges::copy(series.verdict, std::back_inserter(findings));
    std::ranges::move(law_sentences(series), std::back_inserter(laws));
  }
  std::ranges::copy(explanation.causes, std::back_inserter(findings));
  for (const Finding& each : merge_alike(std::move(findings))) {
    section.findings.push_back(to_statement(each));
  }
  std::ranges::move(unfitted_sentences(explanation), std::back_inserter(laws));
  for (std::string& each : laws) {
    Statement& law = section.findings.emplace_back(std::move(each));
    law.on_screen = OnScreen::first;
    law.rank = 4;
  }
  for (const std::string& each : explanation.lacks_cpu) section.findings.emplace_back(each);
  if (!part.findings.empty()) section.parts.push_back(std::move(part));
  section.facts = make_facts({{"base", explanation.base},
                              {"points", points},
                              {"series", all_series},
                              {"unlike_runs", to_json(explanation.unlike)},
                              {"causes", to_json(explanation.causes)},
                              {"cpu_for_communication", explanation.lacks_cpu}});
  return section;
}

Document explanation_document(const std::vector<Explanation>& explanations) {
  std::set<std::string> studies;
  for (const Explanation& each : explanations) studies.merge(study_names(each.study));
  Document document{.name = "explanation",
                    .title = fmt::format("Where the efficiency{} went", of_studies(studies)),
                    .is_brief = true,
                    .list = "explanations",
                    .schema = 2};
  for (const Explanation& explanation : explanations) {
    document.sections.push_back(explanation_section(explanation));
  }
  return document;
}

std::vector<Plot> loss_plots(const Explanation& explanation) {
  auto points = shown_points(explanation);
  if (points.empty()) return {};
  const std::size_t all = points.size();
  points.resize(std::min(all, kMostBars));
  const std::vector<std::string> names = drawn_names(points);
  Bars bars{.stacked = true};
  for (const PointExplanation* point : points) {
    bars.groups.push_back(point->name);
    bars.notes.push_back(note_text(*point, names));
  }
  for (const std::string& name : names) {
    BarSeries series{name, {}, part_colour(name)};
    for (const PointExplanation* point : points) {
      series.bars.emplace_back(Bar{drawn_points(*point, name), {}, ""});
    }
    bars.series.push_back(std::move(series));
  }
  return {{.name = "loss",
           .title = fmt::format("Lost efficiency{}: {}", of_studies(study_names(explanation.study)),
                                explanation.title),
           .subtitle = make_subtitle(points, all),
           .x_label = "points of efficiency",
           .body = std::move(bars)}};
}

}  // namespace paceline

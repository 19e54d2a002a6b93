#include "analysis/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/findings/legend.h"
#include "analysis/study/contrast.h"
#include "analysis/study/labels.h"
#include "analysis/study/scaling_series.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kLargestMisfit = 0.05;   // of a law whose limits are stated
constexpr double kNoSerialShare = 0.005;  // smaller shares state no limit
constexpr double kWorthATerm = 0.005;     // of a step: smaller shares are not listed

// "in 3 of 5 runs rank 2 is late by 17 % of a step", and what it would give back.
std::string late_text(const LateRank& late, const LossParts& parts) {
  std::string text = fmt::format(
      "; {}rank {}{} is late by {:.0f} % of a step{}",
      late.runs == late.runs_of_row ? ""
                                    : fmt::format("in {} of {} runs ", late.runs, late.runs_of_row),
      late.rank, late.host.empty() ? "" : " on " + late.host, late.share_of_step * 100,
      late.phase.empty() ? "" : ", mostly in " + late.phase);
  const Judged back = parts.given_back();
  if (!late.computes_longest || !back.is_above(0)) return text;
  return text +
         fmt::format(": as fast as the next slowest rank, it would give about {} points back",
                     points_text(back));
}

std::string compute_text(const LossParts& parts, const Unit& unit) {
  return "; computing a " + unit.one() + " takes " +
         parts.compute_ratio().match(
             [](const Known& ratio) {
               return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.value, ratio.interval.low,
                                  ratio.interval.high);
             },
             [](double ratio, const WeakEvidence&) { return fmt::format("{:.2f}", ratio); }) +
         " times as long as in the base";
}

// ", but parts of it can: communication costs 17.4 [16.9, 17.9], compute gives 17.0 [16.4, 17.6]
// back", where the whole cannot be distinguished from noise. Empty: no part can either.
std::string certain_parts_text(const LossParts& parts) {
  std::vector<std::string> texts = mapped(parts.certain_losses(), [](const Loss& loss) {
    return loss.label + " costs " + points_text(loss.share);
  });
  for (const Loss& gain : parts.certain_gains()) {
    texts.push_back(gain.label + " gives " + points_text(gain.share, true) + " back");
  }
  return texts.empty() ? "" : ", but parts of it can: " + join(texts, ", ");
}

// "17.4 points of efficiency are lost [16.9, 17.9]".
std::string total_text(const Judged& all) {
  const bool gained = all.value() < 0;
  const std::string text = fmt::format("{:.1f} points of efficiency are {}",
                                       std::abs(all.value()) * 100, gained ? "gained" : "lost");
  return all.match(
      [&](const Known& known) {
        const double sign = gained ? -100 : 100;
        const double a = sign * known.interval.low, b = sign * known.interval.high;
        return fmt::format("{} [{:.1f}, {:.1f}]", text, std::min(a, b), std::max(a, b));
      },
      [&](double, const WeakEvidence&) { return text; });
}

// The same, and ": communication 17.1 [16.6, 17.6], others 0.3".
std::string loss_text(const LossParts& parts) {
  const Judged& all = parts.all();
  const std::string text = total_text(all);
  const std::string list = parts_text(parts.parts(), all.value(), all.value() < 0);
  return all.match(
      [&](const Known&) {
        if (all.is_above(0) || all.is_below(0)) return text + ": " + list;
        return text + ", which cannot be distinguished from noise" + certain_parts_text(parts);
      },
      [&](double, const WeakEvidence& why) {
        return fmt::format("{}: {}; how much of it is noise is not known ({})", text, list,
                           why.text());
      });
}

// See PointExplanation::label.
std::string choose_label(const LossParts& parts) {
  const std::vector<Loss> certain = parts.certain_losses();
  const bool is_lost = parts.all().is_above(0) && parts.all().value() >= kWorthALabel;
  const bool is_hidden = !certain.empty() && certain.front().share.value() >= kWorthALabel;
  const std::vector<std::string> largest = parts.largest();
  return (is_lost || is_hidden) && largest.size() < parts.parts().size() ? join(largest, " or ")
                                                                         : "";
}

std::string label_by_means(const LossParts& parts) {
  if (parts.all().is_known() || parts.all().value() < kWorthALabel) return "";
  return std::ranges::max_element(parts.parts(), {},
                                  [](const Loss& part) { return part.share.value(); })
      ->label;
}

// Labels a point without a base by the largest share of its steps.
void label_without_base(PointExplanation& point) {
  const Costs& costs = point.step->costs;
  const bool is_bound = point.step->is_bound;
  std::vector<std::pair<std::string, double>> shares = {
      {"input", costs.input},
      {"launch", costs.launch},
      {is_bound ? kWaiting : "communication",
       costs.communication + (is_bound ? costs.straggler : 0)},
      {"straggler", is_bound ? 0 : costs.straggler}};
  for (auto& [label, share] : shares) share /= costs.in_steps();
  const auto larger = [](const auto& a, const auto& b) { return a.second > b.second; };
  std::ranges::stable_sort(shares, larger);
  constexpr double kMuch = 0.1;
  const bool is_much = shares.front().second > kMuch - kRounding;
  point.label = is_much ? shares.front().first : "compute";
  shares.emplace_back("compute", costs.compute / costs.in_steps());
  std::ranges::stable_sort(shares, larger);
  std::vector<std::string> texts;
  for (const auto& [label, share] : shares) {
    if (share >= kWorthATerm) texts.push_back(fmt::format("{:.1f} % {}", share * 100, label));
  }
  point.because = "step time: " + join(texts, ", ");
}

// Needing more samples to reach the goal is the label if it costs more than the dearer sample does.
void consider_samples(PointExplanation& point, const LossParts& parts) {
  const Judged samples = parts.samples(), beyond = parts.samples_beyond_cost();
  point.because = fmt::format("the goal took {:.2f} times the samples of the base; besides, {}",
                              std::exp(samples.value()), point.because);
  if (1 - std::exp(-samples.value()) < kWorthALabel) return;
  if (samples.is_above(0) && beyond.is_above(0)) point.label = "samples";
  if (!samples.is_known() && beyond.value() > 0) point.by_means = "samples";
}

std::optional<double> mean_samples(const Row& row) {
  std::vector<double> samples;
  for (const Run& run : row.runs) {
    if (!run.samples()) return std::nullopt;
    samples.push_back(*run.samples());
  }
  return geometric_mean(samples).value;
}

class Explainer {
 public:
  explicit Explainer(Explanation& explanation) : result_(explanation) {}

  void run(const Base& base) {
    result_.comparison = compare(result_.study, base);
    result_.base = base.text();
    for (std::size_t i = 0; i < result_.study.rows.size(); ++i) {
      result_.facts.push_back(row_facts(result_.study, result_.comparison, i));
    }
    result_.unlike = findings_about_runs(result_.study, result_.comparison, result_.facts);
    std::ranges::move(quality_findings(result_.study, result_.facts),
                      std::back_inserter(result_.unlike));
    result_.title = study_title(result_.study);
    const std::vector<std::string> names = point_names(result_.study);
    const Counterfactuals switched_off(result_.study);
    for (std::size_t i = 0; i < names.size(); ++i) {
      result_.points.push_back(explain_point(result_.facts[i], switched_off));
      result_.points.back().name = names[i];
    }
    for (const ScalingSeries& series : make_scaling_series(result_.study, result_.comparison,
                                                           result_.facts, false, Quality::held)) {
      result_.series.push_back(explain_series(series));
    }
    if (result_.study.causes.are_named(1)) {
      result_.causes = causes_finding(result_.study, result_.comparison, trends_);
    }
    result_.lacks_cpu = cpu_for_communication(result_.study);
    add_notes();
  }

 private:
  PointExplanation explain_point(const RowFacts& facts, const Counterfactuals& switched_off) const {
    PointExplanation point;
    point.facts = &facts;
    point.counterfactuals = switched_off.of(*facts.row, result_.comparison.rates);
    const bool is_base = !facts.speed_up || &result_.study.rows[facts.speed_up->base] == facts.row;
    const Row& base_row = is_base ? *facts.row : result_.study.rows[facts.speed_up->base];
    const auto step = [&](const Row& row, const Row& other) {
      const Row common = runs_in_common(row, other);
      return records_.efficiency(common.runs.empty() ? row : common, result_.comparison.rates);
    };
    point.step = step(*facts.row, base_row);
    if (!point.step) return point;
    const auto base = is_base ? std::nullopt : step(base_row, *facts.row);
    if (!base) {
      label_without_base(point);
      return point;
    }
    if (point.step->has_warmup || base->has_warmup) {
      point.because =
          "without step samples (*.steps.gz) beside the records its costs are not known: phases "
          "cover all steps, rates leave out the first ones";
      return point;
    }
    point.computation_scaling = base->costs.compute / point.step->costs.compute;
    point.product = point.step->product() / base->product() * *point.computation_scaling;
    if (!result_.study.goal.empty()) {
      const auto there = mean_samples(result_.study.rows[facts.speed_up->base]);
      const auto here = mean_samples(*facts.row);
      if (there && here) point.samples_to_goal = *there / *here;
      *point.product *= point.samples_to_goal.value_or(1);
    }
    point.residual = *facts.speed_up->efficiency / *point.product - 1;
    explain_losses(point, result_.study.rows[facts.speed_up->base]);
    return point;
  }

  void explain_losses(PointExplanation& point, const Row& base_row) const {
    const Row& row = *point.facts->row;
    const bool rates = result_.comparison.rates;
    const LossParts parts(base_row, records_.costs(base_row, rates), row,
                          records_.costs(row, rates), point.step->is_bound);
    point.lost = parts.all();
    if (!result_.study.causes.are_named(parts.all().value())) {
      point.because =
          total_text(parts.all()) + (parts.all().is_above(0) || parts.all().is_below(0)
                                         ? "; its cause may be the time of day"
                                         : ", which cannot be distinguished from noise");
      return;
    }
    point.losses = parts.parts();
    point.because = loss_text(parts);
    point.label = choose_label(parts);
    point.by_means = label_by_means(parts);
    if (!result_.study.goal.empty()) consider_samples(point, parts);
    const bool is_late = point.label.find("straggler") != std::string::npos;
    const auto late = is_late ? records_.late_rank(row, rates) : std::nullopt;
    if (late) point.because += late_text(*late, parts);
    if (point.label == "straggler" && !late) {
      point.because += "; no one rank is late in most runs";
    }
    const auto gains = parts.certain_gains();
    const bool is_gain = std::ranges::any_of(
        gains, [](const Loss& gain) { return gain.label == std::string_view("compute"); });
    if (point.label == "compute" || is_gain) {
      point.because += compute_text(parts, result_.study.unit);
    }
  }

  SeriesExplanation explain_series(const ScalingSeries& series) {
    SeriesExplanation explanation;
    explanation.name = series.name;
    const SpeedUpRows rows = speed_up_rows(result_.study, result_.comparison, series);
    if (result_.study.scaling == Scaling::weak) explanation.gustafson = fit_gustafson(rows);
    const bool same_work = result_.study.goal.empty();
    if (same_work && !compares_rates(result_.study.scaling)) explanation.amdahl = fit_amdahl(rows);
    if (same_work) explanation.usl = fit_usl(rows);
    const std::vector<Trend> trends = fit_trends(result_.study, result_.comparison, series);
    trends_.insert(trends_.end(), trends.begin(), trends.end());
    explanation.sizes = rows.count_sizes();
    if (same_work) explanation.unfitted = rows.doubt;
    explanation.verdict.push_back(series_finding(series, result_.comparison));
    for (Finding& each : trend_findings(result_.study, series, trends)) {
      explanation.verdict.push_back(std::move(each));
    }
    if (result_.study.causes.are_named(1)) add_limits(explanation, trends);
    return explanation;
  }

  static bool all_are(const std::vector<Trend>& trends, FindingKind kind) {
    return !trends.empty() && std::all_of(trends.begin(), trends.end(),
                                          [&](const Trend& trend) { return trend.kind == kind; });
  }

  // Limits that a law implies for sizes that were not run, where it fits well.
  void add_limits(SeriesExplanation& series, const std::vector<Trend>& trends) const {
    if (all_are(trends, FindingKind::too_few_sizes)) {
      series.verdict.push_back(
          {FindingKind::too_few_sizes,
           "measure another size to see whether the loss grows, as only one has several replicas"});
    }
    const auto& amdahl = series.amdahl;
    const bool falls =
        std::ranges::any_of(trends, [](const Trend& trend) { return trend.change.is_below(0); });
    if (all_are(trends, FindingKind::steady) && !falls && amdahl && amdahl->off < kLargestMisfit &&
        lies_above(amdahl->value.interval, 0) && amdahl->value.value > kNoSerialShare &&
        amdahl->value.interval.high < 1) {
      const auto& [share, interval] = amdahl->value;
      double low = interval.low, high = interval.high;  // as far as a steady fraction may differ
      for (const Trend& trend : trends) {
        low = std::min(low, share - trend.tolerance);
        high = std::max(high, share + trend.tolerance);
      }
      if (low <= 0) return;
      series.verdict.push_back(
          {FindingKind::speed_up_bound, fmt::format("if the fit holds for more replicas, the "
                                                    "speed-up stays below {:.3g} [{:.3g}, {:.3g}]",
                                                    1 / share, 1 / high, 1 / low)});
    }
    const auto& usl = series.usl;
    if (all_are(trends, FindingKind::grows) && usl && usl->peak && usl->off < kLargestMisfit &&
        std::ranges::none_of(trends, is_held_by_input)) {
      series.verdict.push_back(
          {FindingKind::peak, fmt::format("by the fit of the USL the speed-up is highest at about "
                                          "{:.0f} replicas [{:.0f}, {:.0f}]",
                                          usl->peak->value, std::floor(usl->peak->interval.low),
                                          std::ceil(usl->peak->interval.high))});
    }
  }

  // By the phases of the largest size.
  static bool is_held_by_input(const Trend& trend) {
    const auto& parts = trend.sizes.back().parts;
    if (!parts) return false;
    const std::vector<std::string> largest = parts->largest();
    return std::ranges::find(largest, "input") != largest.end();
  }

  void add_notes() {
    const auto without = std::count_if(result_.points.begin(), result_.points.end(),
                                       [](const PointExplanation& p) { return !p.step; });
    if (without == static_cast<std::ptrdiff_t>(result_.points.size())) {
      result_.notes.push_back(
          "the records have no phases of a step, so only the shape of the speed-up hints at "
          "causes");
    } else if (without > 0) {
      result_.notes.push_back(
          fmt::format("{} without phases of a step", counted(without, "point")));
    }
    if (!result_.study.goal.empty()) {
      result_.notes.push_back(
          "no law of scaling is fitted, as the goal takes different numbers of samples");
    }
    if (std::ranges::any_of(result_.comparison.speed_ups, [&](const auto& each) {
          return each && result_.study.rows[each->base].first()->layout.gpus > 1;
        })) {
      result_.notes.push_back("no law of scaling is fitted where the base has several replicas");
    }
    std::ranges::move(caveats(result_.study, result_.comparison),
                      std::back_inserter(result_.notes));
  }

  Explanation& result_;
  StepRecords records_;
  std::vector<Trend> trends_;  // of all series
};

}  // namespace

std::vector<Explanation> explain(const StoreContent& content, const Base& base,
                                 const std::vector<Selection>& selections,
                                 const std::vector<ExpectedRuns>& plans, Pooling pooling) {
  return explain(make_studies(content, selections, plans, pooling), base);
}

std::vector<Explanation> explain(std::vector<Study> studies, const Base& base) {
  std::vector<Explanation> all;
  for (Study& study : studies) {
    all.emplace_back();
    all.back().study = std::move(study);
    Explainer(all.back()).run(base);
  }
  return all;
}

}  // namespace paceline

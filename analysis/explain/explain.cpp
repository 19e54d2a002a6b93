#include "analysis/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "analysis/explain/cpu_for_communication.h"
#include "analysis/findings/findings.h"
#include "analysis/study/contrast.h"
#include "analysis/study/point_names.h"
#include "analysis/study/scaling_series.h"
#include "analysis/table/table.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// A part of the costs, with its label.
struct Part {
  const char* label;
  double Costs::*cost;
};
constexpr std::array<Part, 6> kParts = {{{"input", &Costs::input},
                                         {"communication", &Costs::communication},
                                         {"straggler", &Costs::straggler},
                                         {"launch", &Costs::launch},
                                         {"compute", &Costs::compute},
                                         {"outside of steps", &Costs::outside}}};
constexpr char kWaiting[] = "communication or straggler";  // where only their sum is known

constexpr double kFits = 0.05, kNone = 0.005;
constexpr double kWorthATerm = 0.005;  // parts of less than half a point are not listed

// Of each run, for contrast(): the shares of the parts, then the logarithms of their sum and of the
// samples. So the mean of a row's cost is the geometric one that its speed-up is of.
constexpr std::size_t kTotal = kParts.size(), kSamples = kTotal + 1;

RowValues part_values(const Row& row, const std::vector<Costs>& costs) {
  std::size_t at = 0;
  return values_of(row, [&](const Run& run) {
    const Costs& of_run = costs[at++];
    std::vector<double> values;
    for (const Part& part : kParts) values.push_back(of_run.*part.cost / of_run.total());
    values.push_back(std::log(of_run.total()));
    values.push_back(std::log(*run.samples));
    return values;
  });
}

// A part, or several as one.
using Parts = std::vector<std::size_t>;

double cost_of(const std::vector<double>& means, const Parts& parts) {
  double share = 0;
  for (const std::size_t part : parts) share += means[part];
  return share * std::exp(means[kTotal]);
}

const Parts& all_parts() {
  static const Parts all = {0, 1, 2, 3, 4, 5};
  return all;
}

// Of the means of base and point: by how much these parts make the logarithm of the cost grow. The
// differences of the parts over the logarithmic mean of both costs add up to that of all. B. W.
// Ang, "The LMDI approach to decomposition analysis", Energy Policy 33, 2005.
double growth_of(const RowMeans& means, const Parts& parts) {
  const double here = std::exp(means[1][kTotal]), base = std::exp(means[0][kTotal]);
  const double growth = means[1][kTotal] - means[0][kTotal];
  const double mean = std::abs(growth) < kRounding ? base : (here - base) / growth;
  return (cost_of(means[1], parts) - cost_of(means[0], parts)) / mean;
}

double growth_of_samples(const RowMeans& means) {
  return means[1][kSamples] - means[0][kSamples];
}

// The share of the efficiency that such a growth of the cost takes.
double lost_by(double growth) {
  return 1 - std::exp(-growth);
}

// "communication 20.1 [18.0, 22.2], compute 5.2": largest first.
std::string listed(std::vector<Loss> losses) {
  std::stable_sort(losses.begin(), losses.end(),
                   [](const Loss& a, const Loss& b) { return a.value > b.value; });
  std::vector<std::string> texts;
  for (const Loss& loss : losses) {
    if (std::abs(loss.value) < kWorthATerm) continue;
    std::string text = fmt::format("{} {:.1f}", loss.label, loss.value * 100);
    if (loss.interval) {
      text += fmt::format(" [{:.1f}, {:.1f}]", loss.interval->low * 100, loss.interval->high * 100);
    }
    texts.push_back(text);
  }
  return texts.empty() ? "no part above 0.5" : join(texts, ", ");
}

std::string late_text(const std::optional<LateRank>& late) {
  if (!late) return "; no one rank is late throughout";
  return fmt::format("; rank {}{} is late by {:.0f} % of a step, mostly in {}", late->rank,
                     late->host.empty() ? "" : " on " + late->host, late->share_of_step * 100,
                     late->phase);
}

// A point that nothing is compared with: what its steps are made of.
void label_alone(PointExplanation& point) {
  const Costs& costs = point.step->costs;
  std::vector<Loss> parts;
  Loss most{"compute", 0, std::nullopt};
  for (const Part& part : kParts) {
    if (part.cost == &Costs::outside) continue;
    const bool waits = part.cost == &Costs::communication || part.cost == &Costs::straggler;
    if (point.step->is_bound && part.cost == &Costs::straggler) continue;
    Loss share{part.label, costs.*part.cost / costs.in_steps(), std::nullopt};
    if (point.step->is_bound && waits) {
      share = {kWaiting, (costs.communication + costs.straggler) / costs.in_steps(), std::nullopt};
    }
    if (part.cost != &Costs::compute && share.value > most.value) most = share;
    parts.push_back(share);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Loss& a, const Loss& b) { return a.value > b.value; });
  std::vector<std::string> texts;
  for (const Loss& part : parts) {
    if (part.value < kWorthATerm) continue;
    texts.push_back(fmt::format("{:.1f} % {}", part.value * 100, part.label));
  }
  point.because = "step time: " + join(texts, ", ");
  constexpr double kMuch = 0.1;
  point.label = most.value > kMuch - kRounding ? most.label : "compute";
}

// Where the efficiency of a point went that its base has.
class Losses {
 public:
  Losses(const Row& base, const std::vector<Costs>& base_costs, const Row& row,
         const std::vector<Costs>& costs, bool is_bound)
      : rows_{part_values(base, base_costs), part_values(row, costs)}, doubt_(doubt_of(base, row)) {
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      if (is_bound && kParts[i].cost == &Costs::straggler) continue;
      if (is_bound && kParts[i].cost == &Costs::communication) {
        parts_.push_back({i, i + 1});
        labels_.emplace_back(kWaiting);
      } else {
        parts_.push_back({i});
        labels_.emplace_back(kParts[i].label);
      }
    }
  }

  void explain(PointExplanation& point, bool to_goal) const {
    const Difference all = growth(all_parts());
    point.lost = Loss{"all", lost_by(all.mean), std::nullopt};
    if (is_judged(all)) {
      point.lost->interval = Interval{lost_by(all.interval()->low), lost_by(all.interval()->high)};
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      point.losses.push_back(part_of(*point.lost, all.mean, labels_[i], growth(parts_[i])));
    }
    const std::string list = listed(point.losses);
    const std::string points = fmt::format("{:.1f}", point.lost->value * 100);
    if (doubt_) {
      point.because = fmt::format(
          "{:.1f} points of efficiency are {}: {}; {}, so how much of it is noise is not known",
          std::abs(point.lost->value) * 100, point.lost->value < 0 ? "gained" : "lost", list,
          doubt_.text());
    } else {
      const Interval& known = *point.lost->interval;
      const std::string interval =
          fmt::format("[{:.1f}, {:.1f}]", known.low * 100, known.high * 100);
      if (is_below(all, 0)) {
        point.because = fmt::format("{:.1f} points of efficiency are gained [{:.1f}, {:.1f}]",
                                    -point.lost->value * 100, -known.high * 100, -known.low * 100);
      } else if (!is_above(all, 0)) {
        point.because =
            fmt::format("{} points of efficiency are lost {}, which cannot be told from noise",
                        points, interval);
      } else {
        point.because =
            fmt::format("{} points of efficiency are lost {}: {}", points, interval, list);
      }
    }
    add_label(point, all);
    if (to_goal) add_samples(point);
  }

 private:
  Difference growth(const Parts& parts) const {
    return contrast(rows_, [&](const RowMeans& means) { return growth_of(means, parts); });
  }

  // The parts share what is lost as they share the growth of the cost. No part is more than all of
  // the point's cost.
  static Loss part_of(const Loss& all, double growth_of_all, const std::string& label,
                      const Difference& growth) {
    const double scale = std::abs(growth_of_all) < kRounding ? 1 : all.value / growth_of_all;
    Loss part{label, growth.mean * scale, std::nullopt};
    if (is_judged(growth)) {
      const Interval interval = *growth.interval();
      part.interval = Interval{interval.low * scale, std::min(interval.high * scale, 1.0)};
    }
    return part;
  }

  Difference more(const Parts& parts, const Parts& than) const {
    return contrast(rows_, [&](const RowMeans& means) {
      return growth_of(means, parts) - growth_of(means, than);
    });
  }

  void add_label(PointExplanation& point, const Difference& all) const {
    const auto largest =
        std::max_element(point.losses.begin(), point.losses.end(),
                         [](const Loss& a, const Loss& b) { return a.value < b.value; });
    const auto most = static_cast<std::size_t>(largest - point.losses.begin());
    if (doubt_) {
      if (point.lost->value >= kWorthALabel) point.by_means = largest->label;
      return;
    }
    if (!is_above(all, 0) || point.lost->value < kWorthALabel) return;
    if (!is_above(growth(parts_[most]), 0)) return;
    // What may be as large, and is a loss beyond the noise itself.
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (i == most ||
          (is_above(growth(parts_[i]), 0) && !is_above(more(parts_[most], parts_[i]), 0))) {
        labels.push_back(labels_[i]);
      }
    }
    if (labels.size() < parts_.size()) point.label = join(labels, " or ");
  }

  // More samples to the goal cost more than what a sample costs more.
  void add_samples(PointExplanation& point) const {
    const Difference to_samples = contrast(rows_, growth_of_samples);
    const Difference beyond = contrast(rows_, [](const RowMeans& means) {
      return growth_of_samples(means) - growth_of(means, all_parts());
    });
    point.because = fmt::format("the goal took {:.2f} times the samples of the base; besides, {}",
                                std::exp(to_samples.mean), point.because);
    if (lost_by(to_samples.mean) < kWorthALabel) return;
    if (is_above(to_samples, 0) && is_above(beyond, 0)) point.label = "samples";
    if (doubt_ && beyond.mean > 0) point.by_means = "samples";
  }

  std::vector<RowValues> rows_;
  Doubt doubt_;
  std::vector<Parts> parts_;
  std::vector<std::string> labels_;
};

std::optional<double> mean_samples(const Row& row) {
  std::vector<double> samples;
  for (const Run& run : row.runs) {
    if (!run.samples) return std::nullopt;
    samples.push_back(*run.samples);
  }
  return geometric_mean(samples).value;
}

std::optional<double> samples_ratio(const Row& base, const Row& row) {
  const auto there = mean_samples(base), here = mean_samples(row);
  return there && here ? std::optional(*there / *here) : std::nullopt;
}

class Explainer {
 public:
  Explainer(Explanation& explanation, const StepRecords& records)
      : it_(explanation), records_(records) {}

  void run(const Base& base) {
    it_.comparison = compare(it_.study, base);
    it_.base = base.text();
    for (std::size_t i = 0; i < it_.study.rows.size(); ++i) {
      it_.facts.push_back(row_facts(it_.study, it_.comparison, i));
    }
    it_.unlike = unlike_runs(it_.study, it_.comparison, it_.facts);
    it_.title = make_table(it_.study, it_.comparison, it_.facts).title;
    std::vector<const Row*> rows;
    for (const RowFacts& facts : it_.facts) rows.push_back(facts.row);
    const std::vector<std::string> names = point_names(it_.study, rows);
    const Counterfactuals switched_off(it_.study);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      it_.points.push_back(point(it_.facts[i], switched_off));
      it_.points.back().name = names[i];
    }
    for (const ScalingSeries& series :
         make_scaling_series(it_.study, it_.comparison, it_.facts, false)) {
      it_.series.push_back(explained(series));
    }
    std::vector<Finding> found;
    for (const SeriesExplanation& series : it_.series) {
      found.insert(found.end(), series.verdict.begin(), series.verdict.end());
    }
    it_.causes = causes_finding(it_.study, it_.comparison, found);
    it_.lacks_cpu = cpu_for_communication(it_.study);
    add_notes();
  }

 private:
  PointExplanation point(const RowFacts& facts, const Counterfactuals& switched_off) const {
    PointExplanation point;
    point.facts = &facts;
    point.counterfactuals = switched_off.of(*facts.row, it_.comparison.rates);
    point.step = records_.efficiency(*facts.row, it_.comparison.rates);
    if (!point.step) return point;
    const bool is_base = !facts.speed_up || &it_.study.rows[facts.speed_up->base] == facts.row;
    const auto base =
        is_base ? std::nullopt
                : records_.efficiency(it_.study.rows[facts.speed_up->base], it_.comparison.rates);
    if (!base) {
      label_alone(point);
      return point;
    }
    if (point.step->has_warmup || base->has_warmup) {
      point.because =
          "which cost held it back is not known: the phases are of all steps, the rates leave the "
          "first ones out, and the samples of the steps are not beside the records";
      return point;
    }
    point.computation_scaling = base->costs.compute / point.step->costs.compute;
    point.product = point.step->product() / base->product() * *point.computation_scaling;
    if (!it_.study.goal.empty()) {
      point.samples_to_goal = samples_ratio(it_.study.rows[facts.speed_up->base], *facts.row);
      *point.product *= point.samples_to_goal.value_or(1);
    }
    point.residual = *facts.speed_up->efficiency / *point.product - 1;
    explain_losses(point, *base, it_.study.rows[facts.speed_up->base]);
    return point;
  }

  void explain_losses(PointExplanation& point, const StepEfficiency& base,
                      const Row& base_row) const {
    const Row& row = *point.facts->row;
    const bool rates = it_.comparison.rates;
    Losses(base_row, records_.costs(base_row, rates), row, records_.costs(row, rates),
           point.step->is_bound)
        .explain(point, !it_.study.goal.empty());
    if (point.label == "straggler") point.because += late_text(records_.late_rank(row));
    if (point.label == "compute") {
      point.because += fmt::format("; computing a sample takes {:.2f} times as long as in the base",
                                   point.step->costs.compute / base.costs.compute);
    }
  }

  SeriesExplanation explained(const ScalingSeries& series) const {
    SeriesExplanation result;
    result.name = series.name;
    const std::vector<SpeedPoint> points = speed_points(series);
    if (it_.study.scaling == Scaling::weak) result.gustafson = fit_gustafson(points);
    const bool same_work = it_.study.goal.empty();
    if (same_work && !compares_rates(it_.study.scaling)) result.amdahl = fit_amdahl(points);
    if (same_work) result.usl = fit_usl(points);
    const std::vector<Trend> trends = trends_of(it_.study, it_.comparison, series);
    result.sizes = sizes_of(points);
    result.verdict.push_back(series_finding(series, it_.comparison));
    for (Finding& each : trend_findings(it_.study, series, trends)) {
      result.verdict.push_back(std::move(each));
    }
    add_limits(result, trends, points);
    return result;
  }

  static std::size_t sizes_of(const std::vector<SpeedPoint>& points) {
    std::set<double> sizes;
    for (const SpeedPoint& point : points) {
      if (point.replicas > 1) sizes.insert(point.replicas);
    }
    return sizes.size();
  }

  static bool all_are(const std::vector<Trend>& trends, TrendKind kind) {
    return !trends.empty() && std::all_of(trends.begin(), trends.end(),
                                          [&](const Trend& trend) { return trend.kind == kind; });
  }

  // What a fit says of sizes that were not run: bounds of the fit, said as such, where it fits.
  void add_limits(SeriesExplanation& series, const std::vector<Trend>& trends,
                  const std::vector<SpeedPoint>& points) const {
    if (all_are(trends, TrendKind::one_size)) {
      series.verdict.push_back(
          {FindingKind::too_few_sizes,
           "one size of several replicas: too few to see whether the loss grows"});
    }
    const auto& amdahl = series.amdahl;
    const double least = amdahl && amdahl->interval ? amdahl->interval->low : 0;
    if (all_are(trends, TrendKind::steady) && amdahl && amdahl->off < kFits &&
        amdahl->value > kNone && amdahl->value < 1 && least >= 0) {
      std::string bound = fmt::format("{:.3g}", 1 / amdahl->value);
      if (amdahl->interval && least > 0) {
        bound += fmt::format(" [{:.3g}, {:.3g}]", 1 / amdahl->interval->high, 1 / least);
      }
      series.verdict.push_back(
          {FindingKind::speed_up_bound,
           fmt::format("if that holds for more replicas, too, the speed-up cannot exceed {}: a "
                       "bound of the fit, not of these runs",
                       bound)});
    }
    const auto& usl = series.usl;
    double largest = 1;
    for (const SpeedPoint& point : points) largest = std::max(largest, point.replicas);
    if (all_are(trends, TrendKind::grows) && usl && usl->coherence.interval &&
        usl->coherence.interval->low > 0 && usl->off < kFits && usl->peak > 0 &&
        usl->peak < 2 * largest) {
      series.verdict.push_back(
          {FindingKind::peak,
           fmt::format("by the fit of the USL the speed-up is highest at about {:.0f} replicas",
                       usl->peak)});
    }
  }

  void add_notes() {
    const auto without = std::count_if(it_.points.begin(), it_.points.end(),
                                       [](const PointExplanation& p) { return !p.step; });
    if (without == static_cast<std::ptrdiff_t>(it_.points.size())) {
      it_.notes.push_back(
          "the records have no phases of a step, so only the shape of the speed-up says where it "
          "went");
    } else if (without > 0) {
      it_.notes.push_back(fmt::format("{} points have no phases of a step", without));
    }
    if (!it_.study.goal.empty()) {
      it_.notes.push_back(
          "no law of scaling is fitted, as the goal takes different numbers of samples");
    }
    it_.notes.insert(it_.notes.end(), it_.comparison.notes.begin(), it_.comparison.notes.end());
    it_.notes.insert(it_.notes.end(), it_.study.notes.begin(), it_.study.notes.end());
  }

  Explanation& it_;
  const StepRecords& records_;
};

}  // namespace

std::vector<Explanation> explain(const StoreContent& content, const Base& base,
                                 const std::vector<Selection>& selections,
                                 const std::vector<ExpectedRuns>& plans, bool pool) {
  return explain(content, base, make_studies(content, selections, plans, pool));
}

std::vector<Explanation> explain(const StoreContent& content, const Base& base,
                                 std::vector<Study> studies) {
  const StepRecords records(content);
  std::vector<Explanation> all;
  for (Study& study : studies) {
    all.emplace_back();
    all.back().study = std::move(study);
    Explainer(all.back(), records).run(base);
  }
  return all;
}

}  // namespace paceline

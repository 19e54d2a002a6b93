#include "analysis/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/findings.h"
#include "analysis/ladder.h"
#include "analysis/table.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// What may be lost, with its label.
struct Loss {
  const char* label;
  double Costs::*cost;
};
constexpr std::array<Loss, 5> kLosses = {{{"input", &Costs::input},
                                          {"communication", &Costs::communication},
                                          {"straggler", &Costs::straggler},
                                          {"launch", &Costs::launch},
                                          {"compute", &Costs::compute}}};

std::string name_of_point(const Study& study, const Run& run) {
  std::vector<std::string> parts;
  if (!run.system.empty()) parts.push_back(run.system);
  parts.push_back(fmt::format("gpus={}", run.gpus));
  if (run.nodes.value_or(1) > 1) parts.push_back(fmt::format("nodes={}", *run.nodes));
  if (!run.backend.empty()) parts.push_back(run.backend);
  for (const std::string& axis : study.axes) {
    parts.push_back(fmt::format("{}={}", axis, run.parameters.text(axis).value_or("-")));
  }
  if (run.replicas_are_cores && run.cpus_per_replica()) {
    parts.push_back(fmt::format("{:g} CPU{} a replica", *run.cpus_per_replica(),
                                *run.cpus_per_replica() == 1 ? "" : "s"));
  } else if (run.cpus_per_task) {
    parts.push_back(fmt::format("cpus-per-task {}", *run.cpus_per_task));
  }
  return join(parts, ", ");
}

Costs difference_in_shares(const Costs& here, const Costs& base) {
  Costs lost;
  for (const Loss& loss : kLosses) {
    lost.*loss.cost = (here.*loss.cost - base.*loss.cost) / here.total();
  }
  return lost;
}

Costs shares(const Costs& costs) {
  return difference_in_shares(costs, {});
}

// "communication 20.1, compute 5.2": what is worth half a point, largest first.
std::string listed(const Costs& costs) {
  std::vector<std::pair<double, std::string>> parts;
  for (const Loss& loss : kLosses) {
    const double share = costs.*loss.cost;
    if (std::abs(share) < 0.005) continue;
    parts.emplace_back(-share, fmt::format("{} {:.1f}", loss.label, share * 100));
  }
  std::sort(parts.begin(), parts.end());
  std::vector<std::string> texts;
  for (const auto& [order, text] : parts) texts.push_back(text);
  return texts.empty() ? "nothing above 0.5" : join(texts, ", ");
}

const Loss& largest(const Costs& costs) {
  return *std::max_element(kLosses.begin(), kLosses.end(), [&](const Loss& a, const Loss& b) {
    return costs.*a.cost < costs.*b.cost;
  });
}

std::string late_text(const std::optional<LateRank>& late) {
  if (!late) return "; no one rank is late throughout";
  return fmt::format("; rank {}{} is late by {:.0f} % of a step, mostly in {}", late->rank,
                     late->host.empty() ? "" : " on " + late->host, late->share_of_step * 100,
                     late->phase);
}

// A point that nothing is compared with: what its steps are made of.
void label_alone(PointExplanation& point) {
  Costs waiting = shares(point.step->costs);
  const double compute = waiting.compute;
  point.because = fmt::format("of 100 parts of a step: {}", listed(waiting));
  waiting.compute = 0;
  const Loss& most = largest(waiting);
  constexpr double kMuch = 0.1;
  point.label = compute < 1 - kMuch ? most.label : "compute";
}

void label_against_base(PointExplanation& point, const StepEfficiency& base,
                        const StepRecords& records) {
  point.lost = difference_in_shares(point.step->costs, base.costs);
  const double lost = point.lost.total();
  if (lost < kWorthALabel) {
    point.label = "compute";
    point.because = fmt::format("{:.1f} points of efficiency are lost, which is little: {}",
                                lost * 100, listed(point.lost));
    return;
  }
  const Loss& most = largest(point.lost);
  point.label = most.label;
  point.because =
      fmt::format("{:.1f} points of efficiency are lost: {}", lost * 100, listed(point.lost));
  if (point.label == "straggler") point.because += late_text(records.late_rank(*point.facts->row));
  if (point.label == "compute") {
    point.because += fmt::format("; computing a sample takes {:.2f} times as long as in the base",
                                 point.step->costs.compute / base.costs.compute);
  }
}

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

// More samples to the goal cost more than what a sample costs more.
void add_samples_to_goal(PointExplanation& point) {
  if (!point.samples_to_goal) return;
  const double lost = 1 - *point.samples_to_goal;
  point.because = fmt::format("the goal took {:.2f} times the samples of the base; besides, {}",
                              1 / *point.samples_to_goal, point.because);
  if (lost >= kWorthALabel && lost > point.lost.total()) point.label = "samples";
}

class Explainer {
 public:
  Explainer(Explanation& explanation, const StepRecords& records)
      : it_(explanation), records_(records) {}

  void run(Base base) {
    it_.comparison = compare(it_.study, base);
    it_.base = base == Base::best ? "best" : "matched";
    for (std::size_t i = 0; i < it_.study.rows.size(); ++i) {
      it_.facts.push_back(row_facts(it_.study, it_.comparison, i));
    }
    it_.title = make_table(it_.study, it_.comparison, it_.facts).title;
    for (const RowFacts& facts : it_.facts) it_.points.push_back(point(facts));
    for (const Ladder& ladder : make_ladders(it_.study, it_.comparison, it_.facts, false)) {
      it_.ladders.push_back(explained(ladder));
    }
    add_notes();
  }

 private:
  PointExplanation point(const RowFacts& facts) const {
    PointExplanation point;
    point.facts = &facts;
    point.name = name_of_point(it_.study, facts.run());
    point.counterfactuals = counterfactuals(it_.study, *facts.row, it_.comparison.rates);
    point.step = records_.efficiency(*facts.row);
    if (!point.step) return point;
    const bool is_base = !facts.speed_up || &it_.study.rows[facts.speed_up->base] == facts.row;
    const auto base =
        is_base ? std::nullopt : records_.efficiency(it_.study.rows[facts.speed_up->base]);
    if (!base) {
      label_alone(point);
      return point;
    }
    point.computation_scaling = base->costs.compute / point.step->costs.compute;
    point.product = point.step->product() / base->product() * *point.computation_scaling;
    if (!it_.study.goal.empty()) {
      point.samples_to_goal = samples_ratio(it_.study.rows[facts.speed_up->base], *facts.row);
      *point.product *= point.samples_to_goal.value_or(1);
    }
    point.residual = facts.speed_up->efficiency / *point.product - 1;
    label_against_base(point, *base, records_);
    add_samples_to_goal(point);
    return point;
  }

  LadderExplanation explained(const Ladder& ladder) const {
    LadderExplanation result;
    result.name = ladder.name;
    const std::vector<SpeedPoint> points = speed_points(ladder);
    if (it_.study.scaling == Scaling::weak) result.gustafson = fit_gustafson(points);
    const bool same_work = it_.study.goal.empty();
    if (same_work && !compares_rates(it_.study.scaling)) result.amdahl = fit_amdahl(points);
    if (same_work) result.usl = fit_usl(points);
    result.verdict.push_back(ladder_line(ladder, it_.comparison));
    if (const std::string trend = trend_line(ladder); !trend.empty())
      result.verdict.push_back(trend);
    add_limits(result, points);
    return result;
  }

  static void add_limits(LadderExplanation& ladder, const std::vector<SpeedPoint>& points) {
    constexpr double kNone = 0.005;
    double largest = 1;
    bool all_slower = true;
    for (const SpeedPoint& point : points) {
      largest = std::max(largest, point.replicas);
      all_slower = all_slower && (point.replicas <= 1 || point.speed_up < 1);
    }
    if (ladder.amdahl && all_slower) {
      ladder.verdict.push_back("several replicas are slower than one: no law of scaling applies");
      return;
    }
    const bool has_noise = ladder.usl && ladder.usl->coherence.interval;
    const bool peaks = ladder.usl && ladder.usl->peak > 0 && ladder.usl->peak < 2 * largest;
    const bool is_seen = has_noise ? ladder.usl->coherence.interval->low > 0
                                   : ladder.usl && (ladder.usl->coherence.value > kNone || peaks);
    // Where a cost grows, too, the share says less than the peak.
    if (ladder.amdahl && ladder.amdahl->value > kNone && ladder.amdahl->value < 1 && !is_seen) {
      ladder.verdict.push_back(fmt::format(
          "with a serial share of {:.3g}, if it stays that, no number of replicas is faster than "
          "{:.3g} times",
          ladder.amdahl->value, 1 / ladder.amdahl->value));
    }
    if (!ladder.usl) return;
    if (is_seen) {
      ladder.verdict.push_back(
          fmt::format("a cost grows with the replicas: more than about {:.0f} are slower again",
                      ladder.usl->peak));
    } else if (has_noise) {
      ladder.verdict.push_back(
          "these points show no cost that grows with the replicas (USL's "
          "coherence is not beyond the noise)");
    } else {
      ladder.verdict.push_back("whether a cost grows with the replicas, so few sizes cannot tell");
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
          "no law of scaling is fitted, as the goal takes unlike numbers of samples");
    }
    it_.notes.insert(it_.notes.end(), it_.comparison.notes.begin(), it_.comparison.notes.end());
    it_.notes.insert(it_.notes.end(), it_.study.notes.begin(), it_.study.notes.end());
  }

  Explanation& it_;
  const StepRecords& records_;
};

}  // namespace

std::vector<Explanation> explain(const StoreContent& content, Base base,
                                 const std::vector<Selection>& selections,
                                 const std::vector<WantedRuns>& plans) {
  const StepRecords records(content);
  std::vector<Explanation> all;
  std::vector<Study> studies = make_studies(content, selections, plans);
  for (Study& study : studies) {
    all.emplace_back();
    all.back().study = std::move(study);
    Explainer(all.back(), records).run(base);
  }
  return all;
}

}  // namespace paceline

#include "analysis/findings/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analysis/statistics/robust.h"
#include "analysis/study/cost.h"
#include "analysis/study/labels.h"
#include "analysis/study/rounds.h"
#include "analysis/study/switches.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

LimitVerdict judge_limit(const Estimate& over_best, double within) {
  const auto& interval = over_best.interval;
  if (!interval || over_best.count < over_best.needed) return LimitVerdict::undecided;
  if (interval->high <= 1 + within) return LimitVerdict::within;
  return interval->low > 1 + within ? LimitVerdict::beyond : LimitVerdict::undecided;
}

// By means, or where they leave it open, by trimmed means.
void judge_nearness(NearPoint& point, const Row& row, const Row& fastest, const Best& best) {
  point.over_best = compute_ratio(row, fastest, best.rates);
  point.limit_verdict = judge_limit(point.over_best.estimate, best.within);
  if (point.limit_verdict != LimitVerdict::undecided || find_weak_evidence(fastest, row)) return;
  const Estimate trimmed =
      as_factor(trimmed_contrast(log_costs(fastest, best.rates), log_costs(row, best.rates)),
                1 - kTrimmedShare * (1 - kConfidence));
  point.limit_verdict = judge_limit(trimmed, best.within);
  if (point.limit_verdict != LimitVerdict::undecided) point.trimmed_over_best = trimmed;
}

double count_cpus(const Run& run) {
  if (!run->layout.cpus_per_task) return 0;
  return static_cast<double>(*run->layout.cpus_per_task) * run->layout.ntasks.value_or(1);
}

// The rows that can be compared, and why the others cannot.
class Candidates {
 public:
  Candidates(const Study& study, const CostMetric* least) : study_(study) {
    for (std::size_t i = 0; i < study.rows.size(); ++i) rows.push_back(i);
    keep("whose runs did not all reach their goal",
         [&](std::size_t i) { return reached_goal(study.rows[i]); });
    check_goal();
    keep_if_any("that were not measured",
                [&](std::size_t i) { return study.rows[i].first()->kind == "measured"; });
    const std::vector<bool> spared = spared_work(study);
    keep_if_any("that do less work (backend null, synthetic input, no update)",
                [&](std::size_t i) { return !spared[i]; });
    judge_quality();
    keep_if_any("of only disturbed runs", [&](std::size_t i) { return !study.rows[i].tainted; });
    check_system();
    if (least) keep_with(*least);
  }

  struct Excluded {
    std::size_t row = 0;
    std::string why;
    std::string detail;
    bool lacks_amount = false;  // and nothing else
  };

  std::vector<std::size_t> rows;
  std::vector<Excluded> left_aside;
  std::vector<Standing> standings;  // of each row of the study

 private:
  template <typename Which>
  void keep(const std::string& why, Which which, bool by_amount = false) {
    for (const std::size_t i : rows) {
      if (!which(i)) left_aside.push_back({i, why, "", by_amount});
    }
    std::erase_if(rows, [&](std::size_t i) { return !which(i); });
  }

  template <typename Which>
  void keep_if_any(const char* why, Which which) {
    if (std::ranges::any_of(rows, which)) keep(why, which);
  }

  void judge_quality() {
    const Comparison comparison = compare(study_, Base::matched);
    standings = comparison.among_all;
    for (std::size_t i = 0; i < standings.size(); ++i) {
      const auto& speed_up = comparison.speed_ups[i];
      const bool is_more =
          speed_up && (speed_up->standing.is_barred() || standings[i].answer == Standing::yes);
      if (is_more) standings[i] = speed_up->standing;
    }
    if (const EvidencePoint* reference = reference_of_work()) {
      keep("that did other work than " +
               name_of_program(reference->first()->parameters.text("program").value_or("")),
           [&](std::size_t i) { return !has_other_work(*reference, study_.rows[i]); });
    }
    const std::size_t before = left_aside.size();
    keep_if_any("that trained worse (lower accuracy or higher loss)",
                [&](std::size_t i) { return !standings[i].is_barred(); });
    for (std::size_t k = before; k < left_aside.size(); ++k) {
      const Standing& standing = standings[left_aside[k].row];
      left_aside[k].detail = standing.label + ", " + standing.values;
    }
  }

  // The first program's point of those of unequal work. Null: there are none.
  const EvidencePoint* reference_of_work() const {
    const EvidencePoint* first = nullptr;
    for (const std::size_t i : rows) {
      const Row& row = study_.rows[i];
      if (row.work.empty()) continue;
      if (row.first()->parameters.text("program") == study_.reference) return &row;
      if (!first) first = &row;
    }
    return first;
  }

  void keep_with(const CostMetric& least) {
    const auto has_it = [&](std::size_t i) {
      return std::ranges::all_of(study_.rows[i].runs,
                                 [&](const Run& run) { return least.of(run).value_or(0) > 0; });
    };
    if (std::ranges::none_of(rows, has_it)) {
      throw input_error(
          "no point has a figure of " + least.name, study_.rows.front().first().where,
          least.is_metered ? missing_energy(study_) : "--least core-hours ranks replicas on cores");
    }
    keep("without a figure of " + least.name + " for each run", has_it, true);
    if (!least.is_metered) return;
    const std::string covers = energy_covers(study_.rows[rows.front()]);
    keep(
        "whose energy other meters measured, or other jobs shared",
        [&](std::size_t i) { return energy_covers(study_.rows[i]) == covers; }, true);
  }

  void check_goal() const {
    if (!rows.empty()) return;
    std::size_t runs = 0, reached = 0;
    for (const Row& row : study_.rows) {
      runs += row.runs.size();
      reached += count_where(row.runs, &Run::goal_reached);
    }
    throw input_error(
        fmt::format("no point reached its goal in all of its runs ({} of {} did)", reached, runs),
        study_.rows.front().first().where, "train longer, or choose an easier goal");
  }

  void check_system() const {
    const Run& first = study_.rows[rows.front()].first();
    for (const std::size_t i : rows) {
      const Run& run = study_.rows[i].first();
      if (run.system == first.system && run->kind == first->kind) continue;
      throw usage_error("the records are from different systems", first.where + " and " + run.where,
                        run.system == first.system
                            ? "choose one with --only kind=" + first->kind
                            : "choose one, as by --only 'system=" + first.system + "'");
    }
  }

  const Study& study_;
};

// Which points cannot be distinguished from the fastest.
void find_alike(const Study& study, Best& best) {
  const Row& best_row = study.rows[best.best.row];
  const RowValues fastest = log_costs(best_row, best.rates);
  std::vector<const NearPoint*> others;
  std::vector<double> p, opposite_p;
  for (const NearPoint& point : best.points) {
    if (point.row == best.best.row) continue;
    const Row& row = study.rows[point.row];
    const RowValues costs = log_costs(row, best.rates);
    const Difference slower =
        contrast({fastest, costs}, [](const RowMeans& means) { return means[1][0] - means[0][0]; });
    if (const WeakEvidence doubt = judged(slower, find_weak_evidence(best_row, row)).doubt()) {
      best.unjudged.push_back(point.name);
      best.doubt.add(doubt);
      continue;
    }
    const Difference trimmed = trimmed_contrast(fastest, costs);
    // Neither is known to be the faster if the trimmed means have it the other way round.
    const bool is_opposite = trimmed.mean < 0;
    others.push_back(&point);
    p.push_back(combined_p_value(slower, is_opposite ? Difference{} : trimmed));
    opposite_p.push_back(is_opposite ? combined_p_value({}, trimmed) : 1);
  }
  const std::size_t pairs = others.size() * (others.size() + 1) / 2;
  p = holm_adjusted(p, pairs);
  opposite_p = holm_adjusted(opposite_p, pairs);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (p[i] < 1 - kConfidence) continue;
    best.alike.push_back(*others[i]);
    best.alike.back().faster_but_for_outliers = opposite_p[i] < 1 - kConfidence;
  }
}

}  // namespace

const std::vector<CostMetric>& expenses() {
  constexpr double kKilo = 1000;
  static const std::vector<CostMetric> all = {{"energy", "Wh", kWattHour, energy_joules, true},
                                              {"edp", "kJ s", kKilo, energy_delay, true},
                                              {"gpu-hours", "GPU-hours", 1, gpu_hours},
                                              {"core-hours", "core-hours", 1, core_hours}};
  return all;
}

Best find_best(const Study& study, double within, const CostMetric* least) {
  Best best;
  best.within = within;
  best.least = least;
  best.rates = compare(study, Base::best).rates;
  const Candidates candidates(study, least);
  const std::vector<std::size_t>& rows = candidates.rows;
  const auto cost = [&](std::size_t i) { return mean_cost(study.rows[i], best.rates).value; };
  std::size_t fastest = rows.front();
  for (const std::size_t i : rows) {
    const Ratio faster = compute_ratio(study.rows[fastest], study.rows[i], best.rates);
    if (faster.estimate.value > 1) fastest = i;
  }
  std::vector<const Row*> pointers = mapped(rows, [&](std::size_t i) { return &study.rows[i]; });
  for (const auto& each : candidates.left_aside) pointers.push_back(&study.rows[each.row]);
  const std::vector<std::string> names = point_names(study, pointers);
  for (std::size_t k = 0; k < candidates.left_aside.size(); ++k) {
    const auto& [row, why, detail, lacks_amount] = candidates.left_aside[k];
    best.left_aside.push_back({names[rows.size() + k], why, detail, lacks_amount, std::nullopt});
    const bool is_comparable = lacks_amount || !detail.empty();
    if (is_comparable && cost(row) < cost(fastest)) best.left_aside.back().faster = cost(row);
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    NearPoint point;
    point.row = rows[k];
    point.name = names[k];
    point.cpus = count_cpus(study.rows[rows[k]].first());
    point.doubt = candidates.standings[rows[k]].doubt();
    if (rows[k] == fastest) {
      point.over_best.estimate = {1, std::nullopt, study.rows[fastest].runs.size()};
      point.limit_verdict = LimitVerdict::within;
      best.best = point;
    } else {
      judge_nearness(point, study.rows[rows[k]], study.rows[fastest], best);
    }
    if (least) {
      const Row& row = study.rows[rows[k]];
      point.amount = mean_amount(row, least->of);
      point.amount_over_best = compare_amounts(study.rows[fastest], row, least->of);
      if (rows[k] == fastest) best.best.amount = point.amount;
    }
    best.points.push_back(point);
  }
  std::ranges::stable_sort(best.points, [&](const NearPoint& a, const NearPoint& b) {
    const Run& left = study.rows[a.row].first();
    const Run& right = study.rows[b.row].first();
    if (least) return a.amount->value < b.amount->value;
    return std::tuple(left->layout.gpus, a.cpus, a.over_best.estimate.value) <
           std::tuple(right->layout.gpus, b.cpus, b.over_best.estimate.value);
  });
  const auto smallest = std::ranges::find_if(best.points, [](const NearPoint& point) {
    return point.limit_verdict == LimitVerdict::within;
  });
  best.smallest = *smallest;
  best.by_mean = *std::ranges::find_if(best.points, [&](const NearPoint& point) {
    return point.over_best.estimate.value <= 1 + within;
  });
  std::copy_if(
      best.points.begin(), smallest, std::back_inserter(best.undecided),
      [](const NearPoint& point) { return point.limit_verdict == LimitVerdict::undecided; });
  find_alike(study, best);
  return best;
}

}  // namespace paceline

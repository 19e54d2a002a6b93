#include "analysis/findings/trend.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/study/labels.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

double fraction(double log_cost_over_base, double replicas) {
  return (replicas * std::exp(log_cost_over_base) - 1) / (replicas - 1);
}

// Rows of one base, and what is asked of them.
class Series {
 public:
  Series(const Study& study, const Comparison& comparison, std::size_t base)
      : rates_(comparison.rates),
        base_row_(study.rows[base]),
        base_(log_costs(base_row_, comparison.rates)) {}

  // Keeps the fastest of several rows of one size, such as those of other numbers of tasks.
  void add(const RowFacts& facts) {
    const auto [it, first] = rows_.emplace(facts.run()->layout.gpus, &facts);
    const auto speed_up = [](const RowFacts& row) { return row.speed_up->ratio.estimate.value; };
    if (!first && speed_up(facts) > speed_up(*it->second)) it->second = &facts;
  }

  Trend trend() const {
    Trend trend;
    trend.cpus = cpus_of_run(rows_.begin()->second->run(), "per replica");
    trend.base_gpus = base_row_.first()->layout.gpus;
    trend.has_phases = base_row_.first().phase_sum->step > 0;
    for (const auto& [gpus, facts] : rows_) {
      const double n = facts->speed_up->ideal;
      const Judged log_cost =
          judged(cost_over_base(*facts), find_weak_evidence(base_row_, *facts->row));
      trend.doubt.add(log_cost.doubt());
      trend.has_phases = trend.has_phases && facts->run().phase_sum->step > 0;
      SizeOfTrend& size = trend.sizes.emplace_back();
      size.gpus = gpus;
      size.nodes = facts->run()->layout.nodes;
      size.added = log_cost.transformed([n](double log) { return n * std::exp(log) - 1; });
      size.fraction = log_cost.transformed([n](double log) { return fraction(log, n); });
      size.lost = log_cost.transformed([n](double log) { return 1 - std::exp(-log) / n; });
      size.efficiency = 1 - size.lost.value();
      size.parts = find_parts(*facts->row);
    }
    trend.kind = trend.doubt ? FindingKind::unjudged : judged_kind(trend);
    if (trend.doubt) judge_by_means(trend);
    return trend;
  }

 private:
  std::optional<LossParts> find_parts(const Row& row) const {
    const auto base = record_costs(base_row_, rates_), here = record_costs(row, rates_);
    if (!base || !here) return std::nullopt;
    const bool waits =
        std::ranges::any_of(*here, [](const Costs& costs) { return costs.communication > 0; });
    return LossParts(base_row_, *base, row, *here, waits);
  }

  // As a logarithm, so that its interval is that of the speed-up in the table.
  Difference cost_over_base(const RowFacts& facts) const {
    return contrast({base_, log_costs(*facts.row, rates_)},
                    [](const RowMeans& means) { return means[1][0] - means[0][0]; });
  }

  // The logarithm of a point's cost if it had no loss.
  static double ideal_cost(const RowFacts& facts) { return -std::log(facts.speed_up->ideal); }

  Difference change(const RowFacts& from, const RowFacts& to) const {
    const double few = from.speed_up->ideal, many = to.speed_up->ideal;
    return contrast({base_, log_costs(*from.row, rates_), log_costs(*to.row, rates_)},
                    [few, many](const RowMeans& means) {
                      return fraction(means[2][0] - means[0][0], many) -
                             fraction(means[1][0] - means[0][0], few);
                    });
  }

  template <typename Condition>
  bool all(Condition condition) const {
    return std::ranges::all_of(rows_, [&](const auto& row) { return condition(*row.second); });
  }

  // A fifth of the fraction, or what costs the largest size a fiftieth of its ideal time.
  double tolerance(const Trend& trend) const {
    double mean = 0;
    for (const SizeOfTrend& size : trend.sizes) {
      mean += size.fraction.value() / static_cast<double>(trend.sizes.size());
    }
    return std::max(0.02 / rows_.rbegin()->second->speed_up->ideal, 0.2 * std::abs(mean));
  }

  FindingKind judged_kind(Trend& trend) const {
    if (all([&](const RowFacts& facts) { return is_above(cost_over_base(facts), 0); })) {
      return FindingKind::slower_than_one;
    }
    if (all([&](const RowFacts& facts) {
          return is_below(cost_over_base(facts), ideal_cost(facts));
        })) {
      return FindingKind::above_ideal;
    }
    if (all([&](const RowFacts& facts) {
          return !is_above(cost_over_base(facts), ideal_cost(facts));
        })) {
      return has_hidden_loss(trend) ? FindingKind::hidden_loss : FindingKind::no_loss;
    }
    if (rows_.size() < 2) return FindingKind::too_few_sizes;
    const RowFacts& first = *rows_.begin()->second;
    const Difference whole = change(first, *rows_.rbegin()->second);
    trend.change = judged(whole, {});
    if (const WeakEvidence doubt = trend.change.doubt()) {
      trend.doubt = doubt;
      return FindingKind::unjudged;
    }
    const double most = trend.tolerance = tolerance(trend);
    const auto alike = [&](const RowFacts& facts) {
      if (&facts == &first) return true;
      const Difference part = change(first, facts);
      return is_above(part, -most) && is_below(part, most);
    };
    if (all(alike)) return FindingKind::steady;
    if (is_above(whole, 0)) return FindingKind::grows;
    if (is_below(whole, 0)) return FindingKind::falls;
    return changes_between() ? FindingKind::uneven : FindingKind::unclear;
  }

  // Whether a size between the smallest and the largest differs from the smallest, all tested
  // together.
  bool changes_between() const {
    std::vector<double> p;
    for (auto it = std::next(rows_.begin()); it != std::prev(rows_.end()); ++it) {
      p.push_back(change(*rows_.begin()->second, *it->second).p_value());
    }
    p = holm_adjusted(p);
    return std::ranges::any_of(p, [](double each) { return each < 1 - kConfidence; });
  }

  static bool has_hidden_loss(const Trend& trend) {
    return std::ranges::any_of(trend.sizes, [&](const SizeOfTrend& size) {
      return size.parts && !size.parts->certain_losses(trend.sizes.size()).empty();
    });
  }

  // What the numbers alone look like.
  void judge_by_means(Trend& trend) const {
    if (trend.sizes.size() < 2) {
      trend.kind = FindingKind::too_few_sizes;
      return;
    }
    const auto value = [](const SizeOfTrend& size) { return size.fraction.value(); };
    const auto [lowest, highest] = std::ranges::minmax_element(trend.sizes, {}, value);
    const double low = value(*lowest), high = value(*highest);
    trend.looks_steady = low > 0 && high - low <= tolerance(trend);
  }

  bool rates_;
  const Row& base_row_;
  RowValues base_;
  std::map<int, const RowFacts*> rows_;
};

bool is_comparable(const Study& study) {
  return study.goal.empty() &&
         (study.scaling == Scaling::strong || study.scaling == Scaling::fixed_epochs ||
          study.scaling == Scaling::weak);
}

}  // namespace

std::vector<Trend> fit_trends(const Study& study, const Comparison& comparison,
                              const ScalingSeries& series) {
  std::vector<Trend> trends;
  if (!is_comparable(study)) return trends;
  std::map<std::size_t, Series> by_base;
  for (const SizeGroup& group : series.groups) {
    for (const RowFacts* row : group.rows) {
      if (row->speed_up->ideal <= 1 || !row->run().goal.empty()) continue;
      const std::size_t base = row->speed_up->base;
      by_base.try_emplace(base, study, comparison, base).first->second.add(*row);
    }
  }
  for (const auto& [base, series] : by_base) trends.push_back(series.trend());
  return trends;
}

}  // namespace paceline

// What a table says of its rows: whether they may stand beside their base, and which is faster.
#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/statistics/robust.h"
#include "analysis/study/comparison.h"
#include "analysis/study/contrast.h"
#include "analysis/study/switches.h"

namespace paceline {

namespace {

// Of rows of one machine that do the same work.
std::vector<Standing> stand_among_all(const Study& study, const std::vector<bool>& spared) {
  std::map<std::tuple<std::string, std::string, int>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    if (spared[i] || !reached_goal(study.rows[i])) continue;
    const Run& run = study.rows[i].first();
    const int size = compares_rates(study.scaling) ? run->layout.gpus : 0;
    groups[{run->kind, run.system, size}].push_back(i);
  }
  std::vector<Standing> among_all(study.rows.size());
  for (const auto& [key, members] : groups) {
    std::vector<const EvidencePoint*> points;
    for (const std::size_t i : members) points.push_back(&study.rows[i]);
    std::vector<Standing> standings = stand_together(points);
    for (std::size_t k = 0; k < members.size(); ++k) {
      among_all[members[k]] = std::move(standings[k]);
    }
  }
  return among_all;
}

std::vector<double> log_times(const Row& row, bool rates) {
  std::vector<double> logs;
  for (const std::vector<double>& unit : log_costs(row, rates).values) logs.push_back(unit.front());
  return logs;
}

// p of equal speed: by rounds, and as if runs were independent, which knows the noise of few runs
// better.
double p_of_equal_speed(const Row& base, const Row& row, bool rates) {
  const std::vector<RowValues> both = {log_costs(base, rates), log_costs(row, rates)};
  const Difference slower =
      contrast(both, [](const RowMeans& means) { return means[1][0] - means[0][0]; });
  if (paired_means(both).empty()) return slower.p_value();
  const Stopping stopping = slower.sequences > 0 ? Stopping::by_results : Stopping::fixed;
  return combined_p_value(
      slower, independent_difference(log_times(row, rates), log_times(base, rates), stopping));
}

}  // namespace

void judge_standings(const Study& study, Comparison& comparison) {
  const std::vector<bool> spared = spared_work(study);
  comparison.among_all = stand_among_all(study, spared);
  const auto is_compared = [&](std::size_t i) {
    const auto& speed_up = comparison.speed_ups[i];
    return speed_up && speed_up->base != i && !spared[i];
  };
  std::size_t tests = 0;
  for (std::size_t i = 0; i < study.rows.size(); ++i) tests += is_compared(i) ? 1 : 0;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    auto& speed_up = comparison.speed_ups[i];
    if (is_compared(i)) {
      speed_up->standing = stands_beside(study.rows[speed_up->base], study.rows[i], tests);
    }
    if (speed_up && !speed_up->standing.is_barred() && comparison.among_all[i].has_far_runs) {
      speed_up->standing = comparison.among_all[i];
    }
  }
}

void judge_speeds(const Study& study, Comparison& comparison) {
  const std::vector<bool> spared = spared_work(study);
  std::vector<SpeedUp*> settings;
  std::vector<double> p;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    auto& speed_up = comparison.speed_ups[i];
    if (!speed_up || speed_up->base == i || spared[i] || speed_up->standing.is_barred()) continue;
    const Estimate& ratio = speed_up->ratio.estimate;
    if (!ratio.interval || ratio.count < ratio.needed) continue;
    speed_up->verdict = lies_above(*ratio.interval, 1)   ? SpeedVerdict::faster
                        : lies_below(*ratio.interval, 1) ? SpeedVerdict::slower
                                                         : SpeedVerdict::cannot_tell;
    if (speed_up->ideal != 1) continue;
    settings.push_back(&*speed_up);
    p.push_back(p_of_equal_speed(study.rows[speed_up->base], study.rows[i], comparison.rates));
  }
  // The best base was selected by its time, so by all pairs.
  const std::size_t pairs = p.size() * (p.size() + 1) / 2;
  p = holm_adjusted(p, comparison.base == Base::best ? pairs : p.size());
  for (std::size_t k = 0; k < settings.size(); ++k) {
    if (p[k] >= 1 - kConfidence) settings[k]->verdict = SpeedVerdict::cannot_tell;
  }
}

}  // namespace paceline

// What a table says of its rows: whether they may stand beside their base, and which is faster.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

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

// The variance of a unit, with its degrees of freedom: what rows leave beside their means, and
// beside those of rounds, if all have the same ones.
struct CommonNoise {
  double variance = 0, degrees_of_freedom = 0;
  std::size_t rounds = 0;  // 0: rows have different ones
};

CommonNoise find_common_noise(const std::vector<RowValues>& rows) {
  std::vector<std::vector<double>> units;  // a vector a row
  for (const RowValues& row : rows) {
    std::vector<double>& values = units.emplace_back();
    for (const std::vector<double>& unit : row.values) values.push_back(unit.front());
  }
  CommonNoise noise;
  if (const std::vector<RowMeans> rounds = paired_means(rows); !rounds.empty()) {
    noise.rounds = rounds.size();
    units.assign(rows.size(), {});
    for (const RowMeans& round : rounds) {
      double mean = 0;
      for (const auto& each : round) mean += each.front() / static_cast<double>(rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) units[i].push_back(round[i].front() - mean);
    }
  }
  for (const std::vector<double>& values : units) {
    const double mean = average(values);
    for (const double value : values) noise.variance += (value - mean) * (value - mean);
    noise.degrees_of_freedom += static_cast<double>(values.size()) - 1;
  }
  if (noise.rounds > 0) noise.degrees_of_freedom -= static_cast<double>(noise.rounds) - 1;
  noise.variance /= noise.degrees_of_freedom;
  return noise;
}

// p of equal speed of each row and its base: by the noise that all share, or by that of the two
// alone, where an outlier of another row would hide a difference.
std::vector<double> p_of_equal_speed(const std::vector<RowValues>& base_and_rows) {
  const CommonNoise noise = find_common_noise(base_and_rows);
  const RowValues& base = base_and_rows.front();
  std::vector<double> all;
  for (std::size_t i = 1; i < base_and_rows.size(); ++i) {
    RowValues row = base_and_rows[i];
    for (auto& [session, round] : row.units) round = 0;  // in no round: independent of the base's
    const Difference alone =
        contrast({base, row}, [](const RowMeans& means) { return means[1][0] - means[0][0]; });
    if (alone.sequences > 0) {
      all.push_back(alone.p_value());
      continue;
    }
    const double share = noise.rounds > 0 ? 2 / static_cast<double>(noise.rounds)
                                          : 1 / static_cast<double>(base.values.size()) +
                                                1 / static_cast<double>(row.values.size());
    const Difference shared{alone.mean, std::sqrt(noise.variance * share), noise.degrees_of_freedom,
                            alone.count};
    all.push_back(std::min(1.0, 2 * std::min(alone.p_value(), shared.p_value())));
  }
  return all;
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
  std::map<std::size_t, std::vector<std::size_t>> settings;  // of one size, by their base
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    auto& speed_up = comparison.speed_ups[i];
    if (!speed_up || speed_up->base == i || spared[i] || speed_up->standing.is_barred()) continue;
    const Estimate& ratio = speed_up->ratio.estimate;
    if (!ratio.interval || ratio.count < ratio.needed) continue;
    speed_up->verdict = lies_above(*ratio.interval, 1)   ? SpeedVerdict::faster
                        : lies_below(*ratio.interval, 1) ? SpeedVerdict::slower
                                                         : SpeedVerdict::cannot_tell;
    if (speed_up->ideal == 1) settings[speed_up->base].push_back(i);
  }
  std::vector<std::size_t> tested;
  std::vector<double> p;
  std::size_t pairs = 0;  // the best base was selected, and `best` compares all
  for (const auto& [base, rows] : settings) {
    std::vector<RowValues> values = {log_costs(study.rows[base], comparison.rates)};
    for (const std::size_t i : rows) values.push_back(log_costs(study.rows[i], comparison.rates));
    std::ranges::copy(p_of_equal_speed(values), std::back_inserter(p));
    tested.insert(tested.end(), rows.begin(), rows.end());
    pairs += rows.size() * (rows.size() + 1) / 2;
  }
  if (tested.size() == 1) return;  // its interval says it all
  p = holm_adjusted(p, pairs);
  for (std::size_t k = 0; k < tested.size(); ++k) {
    if (p[k] >= 1 - kConfidence) {
      comparison.speed_ups[tested[k]]->verdict = SpeedVerdict::cannot_tell;
    }
  }
}

}  // namespace paceline

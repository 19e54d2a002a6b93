// How the cost of runs differs with a covariate in which runs of one row differ.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "analysis/evidence/covariates.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// Smaller effects are not worth a sentence, and numbers that vary by less are one.
constexpr double kLeastEffect = 0.005, kSameNumber = 0.01;
constexpr std::size_t kMostEffects = 3, kMostTried = 4;  // of one covariate
constexpr double kLargestResemblance = 0.95;
constexpr double kChanceOfOrder = 0.01;  // of an order that is always the same

// A run, or the mean of several. Its texts are those of the record.
struct Observation {
  std::size_t row = 0;
  std::string_view session, started;
  int round = 0;
  std::set<std::string> values;
  double x = 0, y = 0;  // the covariate, and the logarithm of the cost
};

using Observations = std::vector<Observation>;
using UnitKey = std::tuple<std::size_t, std::string_view, std::string_view, int>;
using UnitKeyOf = UnitKey (*)(const Observation&);

UnitKey all_of_them(const Observation&) {
  return {};
}
UnitKey row_key(const Observation& one) {
  return {one.row, "", "", 0};
}
UnitKey session_key(const Observation& one) {
  return {0, one.session, "", 0};
}
UnitKey row_and_session(const Observation& one) {
  return {one.row, one.session, "", 0};
}
UnitKey round_or_run(const Observation& one) {
  return one.round > 0 ? UnitKey{0, one.session, "", one.round}
                       : UnitKey{one.row + 1, one.session, one.started, 0};
}

std::optional<double> run_log_cost(const Run& run, bool rates) {
  const auto value = rates ? run.samples_per_second : std::optional<double>(run.fit_seconds());
  if (!value || !(*value > 0)) return std::nullopt;
  return rates ? -std::log(*value) : std::log(*value);
}

bool is_counted(const Run& run) {
  return run.effect == Effect::none && (run->kind == "measured" || run->kind == "imported");
}

struct CountedRun {
  std::size_t row = 0, alike = 0;  // alike: rows that differ in their layout alone are one
  const Run* run = nullptr;
  double log_cost = 0;
};

// In the order of their sessions and times.
std::vector<CountedRun> count_runs(const std::vector<CovariateRow>& rows) {
  MatchRule but_for_layout = MatchRule::row();
  but_for_layout.nodes = but_for_layout.tasks = false;
  std::map<std::string, std::size_t> alike;
  std::vector<CountedRun> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].runs->empty()) continue;
    const bool rates = std::ranges::any_of(
        *rows[i].runs, [](const Run& run) { return !run.fit_seconds() || !run.goal.empty(); });
    const std::string key = rows[i].runs->front().key(but_for_layout).text();
    const std::size_t like = alike.emplace(key, alike.size()).first->second;
    for (const Run& run : *rows[i].runs) {
      const auto cost = run_log_cost(run, rates);
      if (cost && is_counted(run)) all.push_back({i, like, &run, *cost});
    }
  }
  std::ranges::stable_sort(all, {}, [](const CountedRun& one) {
    const RunRecord& record = *one.run->record;
    return std::tuple<std::string_view, std::string_view, int>(
        record.session, record.provenance.started_at, record.round);
  });
  return all;
}

// Of runs for which the covariate is known.
Observations observe(const std::vector<CountedRun>& runs, const Covariate& covariate) {
  Observations all;
  for (const auto& [row, alike, run, log_cost] : runs) {
    const RunRecord& record = *run->record;
    Observation one{covariate.is_layout ? alike : row,
                    record.session,
                    record.provenance.started_at,
                    record.round,
                    {},
                    0,
                    log_cost};
    if (covariate.number) {
      const auto number = covariate.number(*run);
      if (!number || !(*number > 0)) continue;
      one.x = std::log(*number);
    } else {
      one.values = covariate_values(covariate, *run);
      if (one.values.empty()) continue;
    }
    all.push_back(std::move(one));
  }
  return all;
}

Observations means_by(UnitKeyOf key, const Observations& all) {
  std::map<UnitKey, std::size_t> index;
  std::vector<double> counts;
  Observations means;
  for (const Observation& one : all) {
    const std::size_t i = index.emplace(key(one), means.size()).first->second;
    if (i == means.size()) {
      means.push_back(one);
      counts.push_back(1);
      continue;
    }
    ++counts[i];
    means[i].x += (one.x - means[i].x) / counts[i];
    means[i].y += (one.y - means[i].y) / counts[i];
  }
  return means;
}

// Less the means of their blocks, by block and in order.
Observations centred_by(UnitKeyOf block, Observations all) {
  std::map<UnitKey, Observation> means;
  for (Observation& mean : means_by(block, all)) means.emplace(block(mean), mean);
  for (Observation& one : all) {
    const Observation& mean = means.at(block(one));
    one.x -= mean.x;
    one.y -= mean.y;
  }
  std::ranges::stable_sort(all, {}, block);
  return all;
}

// Those of blocks in which the covariate varies.
Observations differing_in(UnitKeyOf block, const Observations& all, double least) {
  std::map<UnitKey, std::pair<double, double>> ranges;
  for (const Observation& one : all) {
    auto& [low, high] = ranges.emplace(block(one), std::pair(one.x, one.x)).first->second;
    low = std::min(low, one.x);
    high = std::max(high, one.x);
  }
  Observations differing;
  std::ranges::copy_if(all, std::back_inserter(differing), [&](const Observation& one) {
    const auto& [low, high] = ranges.at(block(one));
    return high - low > least;
  });
  return differing;
}

double squares_of_x(const Observations& all) {
  return summed(all, [](const Observation& one) { return one.x * one.x; });
}

// By how much neighbours that resemble each other raise the variance of a slope.
double slope_inflation(const Observations& centred, UnitKeyOf block, double slope) {
  std::vector<std::vector<double>> residuals;
  for (std::size_t i = 0; i < centred.size(); ++i) {
    if (i == 0 || block(centred[i]) != block(centred[i - 1])) residuals.emplace_back();
    residuals.back().push_back(centred[i].y - slope * centred[i].x);
  }
  const double resemblance =
      std::clamp(resemblance_from_residuals(residuals), 0.0, kLargestResemblance);
  double products = 0, before = 0;
  for (std::size_t i = 0; i < centred.size(); ++i) {
    const bool goes_on = i > 0 && block(centred[i]) == block(centred[i - 1]);
    before = goes_on ? resemblance * (before + centred[i - 1].x) : 0;
    products += centred[i].x * before;
  }
  return std::max(1.0, 1 + 2 * products / squares_of_x(centred));
}

// The slope within blocks. Its count is that of units above or below the mean, whichever are fewer.
Difference fit_slope(const Observations& units, UnitKeyOf block, std::size_t fewest = kFewestRuns) {
  const Observations centred = centred_by(block, units);
  std::set<UnitKey> blocks;
  std::size_t above = 0, below = 0;
  double product = 0;
  for (const Observation& one : centred) {
    blocks.insert(block(one));
    above += one.x > kRounding ? 1 : 0;
    below += one.x < -kRounding ? 1 : 0;
    product += one.x * one.y;
  }
  Difference result;
  result.count = std::min(above, below);
  const double squares = squares_of_x(centred);
  const double freedom =
      static_cast<double>(centred.size()) - static_cast<double>(blocks.size()) - 1;
  if (result.count < fewest || freedom <= 0 || squares <= 0) return result;
  result.mean = product / squares;
  double left = 0;
  for (const Observation& one : centred) left += std::pow(one.y - result.mean * one.x, 2);
  result.degrees_of_freedom = freedom;
  result.standard_error =
      std::sqrt(left / freedom / squares * slope_inflation(centred, block, result.mean));
  return result;
}

// Within the sessions of rows, if they differ there, else between sessions.
Difference compare_within_rows(const Observations& all, double least) {
  Observations used = differing_in(row_and_session, all, least);
  const bool by_session = used.empty();
  if (by_session) used = differing_in(row_key, means_by(row_and_session, all), least);
  if (used.empty()) return {};
  const UnitKeyOf block = by_session ? row_key : row_and_session,
                  shared = by_session ? session_key : round_or_run;
  const Observations centred = centred_by(block, used), means = means_by(shared, centred);
  std::map<UnitKey, double> members;
  for (const Observation& one : centred) ++members[shared(one)];
  double between = 0;
  for (const Observation& mean : means) between += members.at(shared(mean)) * mean.x * mean.x;
  // What runs of a round share counts once, where it is rounds that differ.
  const bool is_shared = 2 * between > squares_of_x(centred);
  if (!is_shared || means.size() == centred.size()) return fit_slope(used, block);
  // Two rounds of several rows are more than three runs.
  return by_session ? fit_slope(means, all_of_them) : fit_slope(means, session_key, 2);
}

struct ValueEffect {
  std::string value;
  Difference effect;
};

// The values that enough runs have, those first whose runs deviate most from the means of rows.
std::vector<std::string> values_to_try(const Observations& all) {
  std::map<std::string, std::pair<double, double>> sums;  // of deviations, and their number
  for (const Observation& one : centred_by(row_and_session, all)) {
    for (const std::string& value : one.values) {
      sums[value].first += one.y;
      ++sums[value].second;
    }
  }
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [value, sum] : sums) {
    const double others = static_cast<double>(all.size()) - sum.second;
    if (std::min(sum.second, others) < static_cast<double>(kFewestRuns)) continue;
    ranked.emplace_back(-std::abs(sum.first) / std::sqrt(sum.second), value);
  }
  std::ranges::sort(ranked);
  return mapped(ranked, [](auto& value) { return std::move(value.second); });
}

// The most certain effect of a value against the others.
ValueEffect strongest_effect(Observations& all) {
  std::vector<std::string> values = values_to_try(all);
  if (values.size() > kMostTried) values.resize(kMostTried);
  ValueEffect strongest;
  for (const std::string& value : values) {
    for (Observation& one : all) one.x = one.values.contains(value) ? 1 : 0;
    const Difference effect = compare_within_rows(all, 0.5);
    const double p = effect.p_value(), least = strongest.effect.p_value();
    // Of two values, which have one p, the slower one is named.
    const bool is_slower = p <= least * (1 + kRounding) && effect.mean > strongest.effect.mean;
    if (strongest.value.empty() || p < least * (1 - kRounding) || is_slower) {
      strongest = {value, effect};
    }
  }
  return strongest;
}

std::string factor_text(const Difference& effect) {
  const Estimate factor = as_factor(effect);
  return fmt::format("{:.2f} [{:.2f}, {:.2f}] times as long", factor.value, factor.interval->low,
                     factor.interval->high);
}

std::string other_values_text(const Covariate& covariate, const Observations& all,
                              const std::string& value) {
  std::set<std::string> others;
  for (const Observation& one : all) others.insert(one.values.begin(), one.values.end());
  others.erase(value);
  if (others.size() > 1 || covariate.is_list) return "the others of their row";
  return fmt::format("those {} {}", covariate.where, *others.begin());
}

bool is_worth_saying(const Difference& effect, double level) {
  return std::abs(effect.mean) >= kLeastEffect && effect.p_value() < level;
}

class EffectsOfCovariate {
 public:
  EffectsOfCovariate(const Covariate& covariate, const std::vector<CountedRun>& runs)
      : covariate_(covariate), all_(observe(runs, covariate)) {
    const auto is_first = [&](const Observation& one) { return one.values == all_.front().values; };
    if (!covariate.number && std::ranges::all_of(all_, is_first)) all_.clear();
  }

  std::size_t tests() const {
    if (covariate_.number) return all_.empty() ? 0 : 1;
    const std::size_t values = values_to_try(all_).size();
    return values == 2 ? 1 : values;
  }

  std::vector<std::string> sentences(double level) {
    return covariate_.number ? of_number(level) : of_values(level);
  }

 private:
  std::vector<std::string> of_values(double level) {
    std::vector<std::string> found;
    const std::size_t runs = all_.size();
    while (found.size() < kMostEffects) {
      const auto [value, effect] = strongest_effect(all_);
      if (value.empty() || !is_worth_saying(effect, level)) return found;
      const auto has_it = [&, name = value](const Observation& one) {
        return one.values.contains(name);
      };
      found.push_back(fmt::format("runs {} {} take {} as {} ({} of {})", covariate_.where, value,
                                  factor_text(effect), other_values_text(covariate_, all_, value),
                                  std::ranges::count_if(all_, has_it), counted(runs, "run")));
      std::erase_if(all_, has_it);
    }
    return found;
  }

  std::vector<std::string> of_number(double level) const {
    if (all_.empty()) return {};
    Difference effect = compare_within_rows(all_, kSameNumber);
    const auto [low, high] = std::ranges::minmax(all_, {}, &Observation::x);
    effect.mean *= low.x - high.x;
    effect.standard_error *= high.x - low.x;
    if (effect.mean < 0 || !is_worth_saying(effect, level)) return {};
    return {fmt::format("at a {} of {:.0f} {} runs take {} as at {:.0f} {}", covariate_.name,
                        std::exp(low.x), covariate_.unit, factor_text(effect), std::exp(high.x),
                        covariate_.unit)};
  }

  const Covariate& covariate_;
  Observations all_;
};

}  // namespace

std::optional<Difference> trend_of_cycles(const std::vector<CovariateRow>& rows) {
  const std::vector<CountedRun> all = count_runs(rows);
  std::map<std::string_view, std::vector<Observation>> sessions;
  for (const auto& [row, alike, run, log_cost] : all) {
    const RunRecord& record = *run->record;
    sessions[record.session].push_back(
        {row, record.session, record.provenance.started_at, record.round, {}, 0, log_cost});
  }
  double chance = 1;
  Observations observed;
  for (auto& [session, runs] : sessions) {
    const std::size_t period = distinct(runs, &Observation::row).size();
    if (period < 2) return std::nullopt;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const bool is_known =
          !runs[i].started.empty() && (i == 0 || runs[i].started > runs[i - 1].started);
      if (!is_known || (i >= period && runs[i].row != runs[i - period].row)) return std::nullopt;
      runs[i].x = static_cast<double>(i / period);
      runs[i].round = 1 + static_cast<int>(i / period);
      if (i >= period) chance /= static_cast<double>(1 + i % period);
      observed.push_back(runs[i]);
    }
  }
  if (observed.empty() || chance > kChanceOfOrder) return std::nullopt;
  const Observations cycles = means_by(round_or_run, centred_by(row_and_session, observed));
  return fit_slope(cycles, session_key, 2);
}

std::vector<std::string> covariate_effects(const std::vector<CovariateRow>& rows, bool of_gate) {
  const std::vector<CountedRun> runs = count_runs(rows);
  std::vector<EffectsOfCovariate> all;
  std::size_t tests = 0;
  for (const Covariate& covariate : covariates()) {
    if (!covariate.has_effect || (of_gate && covariate.is_weighed)) continue;
    tests += all.emplace_back(covariate, runs).tests();
  }
  const double level = kCovariateLevel / static_cast<double>(std::max<std::size_t>(tests, 1));
  return flattened(all, [&](EffectsOfCovariate& each) { return each.sentences(level); });
}

}  // namespace paceline

#include "analysis/gate/weigh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/gate/wording.h"
#include "analysis/statistics/anytime.h"

namespace paceline {

namespace {

using RoundKey = std::pair<std::string, int>;

// Values on the scale on which they are compared, more being worse.
double scaled(double value, const QuantityInfo& info) {
  const double magnitude = info.is_factor ? std::log(value) : value;
  return info.more_is_worse ? magnitude : -magnitude;
}

double as_change(double difference, const QuantityInfo& info) {
  return info.is_factor ? std::exp(difference) - 1 : difference;
}

std::vector<double> scaled_values(const Samples& samples, const QuantityInfo& info) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(scaled(sample.value, info));
  return values;
}

// Of scaled values, as the quantity itself.
double mean_of(const std::vector<double>& values, const QuantityInfo& info) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  if (!info.more_is_worse) mean = -mean;
  return info.is_factor ? std::exp(mean) : mean;
}

template <typename Key, typename KeyOf>
std::map<Key, double> means_by(const Samples& samples, const QuantityInfo& info, KeyOf key_of) {
  std::map<Key, std::pair<double, int>> sums;
  for (const Sample& sample : samples) {
    auto& [sum, count] = sums[key_of(sample)];
    sum += scaled(sample.value, info);
    ++count;
  }
  std::map<Key, double> means;
  for (const auto& [key, sum] : sums) means[key] = sum.first / sum.second;
  return means;
}

bool is_in_round(const Sample& sample) {
  return sample.round > 0 && !sample.session.empty();
}

RoundKey round_of(const Sample& sample) {
  return {sample.session, sample.round};
}

std::set<RoundKey> rounds_of(const Samples& samples) {
  std::set<RoundKey> rounds;
  for (const Sample& sample : samples) {
    if (is_in_round(sample)) rounds.insert(round_of(sample));
  }
  return rounds;
}

// The rounds that both sides have; fewer than decide count only where these are all of the smaller
// side.
std::set<RoundKey> shared_rounds(const Samples& baseline, const Samples& current) {
  const std::set<RoundKey> before = rounds_of(baseline), now = rounds_of(current);
  std::set<RoundKey> shared;
  std::set_intersection(before.begin(), before.end(), now.begin(), now.end(),
                        std::inserter(shared, shared.end()));
  const bool all_shared = shared.size() == std::min(before.size(), now.size());
  return all_shared || shared.size() >= kFewestRuns ? shared : std::set<RoundKey>{};
}

template <typename Key>
std::vector<double> values_in(const std::map<Key, double>& means) {
  std::vector<double> values;
  for (const auto& [key, mean] : means) values.push_back(mean);
  return values;
}

// What a side's mean is taken over, scaled: its runs, its sessions, or the rounds that both have.
std::vector<double> units_of(const Samples& samples, const QuantityInfo& info, Evidence evidence) {
  switch (evidence) {
    case Evidence::paired:
      return values_in(means_by<RoundKey>(samples, info, round_of));
    case Evidence::sessions:
      return values_in(
          means_by<std::string>(samples, info, [](const Sample& s) { return s.session; }));
    case Evidence::runs:
    case Evidence::apart:
    case Evidence::none:
      break;
  }
  return scaled_values(samples, info);
}

std::size_t sessions_of(const Samples& samples) {
  std::set<std::string> sessions;
  for (const Sample& sample : samples) sessions.insert(sample.session);
  return sessions.size();
}

Samples samples_in(const Samples& samples, const std::set<RoundKey>& rounds) {
  Samples kept;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(kept),
               [&](const Sample& s) { return is_in_round(s) && rounds.contains(round_of(s)); });
  return kept;
}

Evidence evidence_of(const Samples& baseline, const QuantityInfo& info, bool is_paired) {
  if (is_paired) return Evidence::paired;
  if (!info.is_of_machine) return Evidence::runs;
  return sessions_of(baseline) >= kFewestSessions ? Evidence::sessions : Evidence::apart;
}

Difference difference_of(const std::vector<double>& before, const std::vector<double>& now,
                         Evidence evidence, Stopping stopping) {
  if (evidence == Evidence::sessions) return pooled_difference(now, before);
  if (evidence != Evidence::paired) return independent_difference(now, before, stopping);
  std::vector<double> differences;
  for (std::size_t i = 0; i < now.size(); ++i) differences.push_back(now[i] - before[i]);
  return paired_difference(differences, stopping);
}

// How many rounds, sessions or runs of each side would tell a change of the threshold from none at
// this noise; 0: more than 100.
int units_needed(const Weighed& weighed, const QuantityInfo& info) {
  constexpr int kMost = 100;
  const double threshold = weighed.check.threshold;
  const double wanted = info.is_factor ? std::log1p(threshold) : threshold;
  const double spread = weighed.difference.standard_error * std::sqrt(weighed.units);
  for (int units = static_cast<int>(kFewestRuns); units <= kMost; ++units) {
    const double quantile = weighed.difference.sequences > 0
                                ? anytime_quantile(static_cast<std::size_t>(units), kConfidence)
                                : t_quantile(units - 1);
    if (quantile * spread / std::sqrt(units) < wanted) return units;
  }
  return 0;
}

// "; about 12 rounds would tell". No number of runs tells what sessions differ in.
std::string what_would_tell(const Weighed& weighed, const QuantityInfo& info) {
  const int units = units_needed(weighed, info);
  if (weighed.check.evidence == Evidence::sessions) {
    return units == 0 ? "; fresh runs of both sides (--rerun) leave out how sessions differ"
                      : fmt::format(
                            "; about {} sessions of each side would tell, or fresh runs of "
                            "both (--rerun)",
                            units);
  }
  if (units == 0) return "";
  return fmt::format("; about {} {} would tell", units,
                     weighed.check.evidence == Evidence::paired ? "rounds" : "runs of each side");
}

}  // namespace

Weighed weigh_samples(const std::string& subject, const QuantityInfo& info, const Samples& baseline,
                      const Samples& current, double threshold, Stopping stopping) {
  const std::set<RoundKey> rounds = shared_rounds(baseline, current);
  const Samples before = rounds.empty() ? baseline : samples_in(baseline, rounds);
  const Samples now = rounds.empty() ? current : samples_in(current, rounds);
  Weighed result;
  Check& check = result.check;
  check.subject = subject;
  check.quantity = info.quantity;
  check.threshold = threshold;
  check.evidence = evidence_of(before, info, !rounds.empty());
  check.baseline_runs = before.size();
  check.current_runs = now.size();
  check.baseline_sessions = sessions_of(before);
  check.current_sessions = sessions_of(now);
  const auto units_before = units_of(before, info, check.evidence);
  const auto units_now = units_of(now, info, check.evidence);
  check.baseline = mean_of(units_before, info);
  check.current = mean_of(units_now, info);
  result.difference = difference_of(units_before, units_now, check.evidence, stopping);
  if (check.evidence == Evidence::sessions) {
    result.difference.count = std::min(before.size(), now.size());
  }
  result.units = 2 / (1 / static_cast<double>(units_before.size()) +
                      1 / static_cast<double>(units_now.size()));
  return result;
}

void fill_in(Weighed& weighed) {
  Check& check = weighed.check;
  check.difference = weighed.difference;
  if (check.evidence == Evidence::none) return;
  const QuantityInfo& info = info_of(check.quantity);
  check.change = as_change(weighed.difference.mean, info);
  if (const auto interval = weighed.difference.interval()) {
    check.interval = Interval{as_change(interval->low, info), as_change(interval->high, info)};
  }
  const bool counts = weighed.difference.count >= kFewestRuns;
  if (counts && std::abs(*check.change) > kRounding) check.p = weighed.difference.p_value();
}

void decide(Weighed& weighed) {
  Check& check = weighed.check;
  const QuantityInfo& info = info_of(check.quantity);
  if (weighed.difference.count < kFewestRuns) {
    check.reason = fmt::format("{} and {} runs: at least {} of each decide", check.baseline_runs,
                               check.current_runs, kFewestRuns);
    return;
  }
  if (check.evidence == Evidence::apart) {
    check.reason = fmt::format(
        "the sides ran in sessions of their own, and the baseline has {} of them: {} decide, or "
        "fresh runs of both (--rerun)",
        check.baseline_sessions, kFewestSessions);
    return;
  }
  const std::string change = change_text(*check.change, info);
  if (*check.change > check.threshold - kRounding) {
    const bool significant = check.adjusted_p < kSignificance;
    check.verdict = significant ? Verdict::regression : Verdict::undecided;
    check.reason = fmt::format("{} by {}, {} ({})", worse_word(info), change,
                               significant ? "beyond the noise" : "within the noise",
                               p_phrase(check.adjusted_p));
    if (!significant) check.reason += what_would_tell(weighed, info);
    return;
  }
  if (!check.interval) {
    check.reason = "too few rounds for an interval that holds however often one looks";
    return;
  }
  const double bound = check.interval->high;
  if (bound < 2 * check.threshold) {
    check.verdict = Verdict::pass;
    return;
  }
  check.reason = fmt::format("too noisy: {} by up to {} cannot be excluded", worse_word(info),
                             change_text(bound, info)) +
                 what_would_tell(weighed, info);
}

}  // namespace paceline

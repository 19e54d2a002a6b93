#include "analysis/gate/weigh.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/polygamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/gate/quantity.h"
#include "analysis/statistics/robust.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::vector<double> scaled_values(const Samples& samples, const QuantityInfo& info) {
  return mapped(samples, [&](const Sample& sample) { return scaled(sample.value, info); });
}

// The mean of scaled values, on the scale of the quantity.
double compute_mean(const std::vector<double>& values, const QuantityInfo& info) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  if (!info.more_is_worse) mean = -mean;
  return info.is_factor ? std::exp(mean) : mean;
}

template <typename Key>
std::vector<double> values_in(const std::map<Key, double>& means) {
  return mapped(means, [](const auto& mean) { return mean.second; });
}

// What a side's mean is taken over, scaled: its runs, its sessions, or the rounds that both have.
std::vector<double> unit_values(const Samples& samples, const QuantityInfo& info,
                                Replication evidence) {
  switch (evidence) {
    case Replication::paired:
      return values_in(means_of_rounds(samples, info));
    case Replication::sessions:
      return values_in(means_of_sessions(samples, info));
    case Replication::runs:
    case Replication::apart:
    case Replication::none:
      break;
  }
  return scaled_values(samples, info);
}

Replication choose_evidence(const Samples& baseline, const QuantityInfo& info, bool is_paired) {
  if (is_paired) return Replication::paired;
  if (!info.is_of_machine) return Replication::runs;
  return count_sessions(baseline) >= kFewestSessions ? Replication::sessions : Replication::apart;
}

std::vector<double> compute_differences(const std::vector<double>& before,
                                        const std::vector<double>& now) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < now.size(); ++i) differences.push_back(now[i] - before[i]);
  return differences;
}

Difference compute_difference(const std::vector<double>& before, const std::vector<double>& now,
                              Replication evidence, Stopping stopping) {
  if (evidence == Replication::sessions) return pooled_difference(now, before);
  if (evidence != Replication::paired) return independent_difference(now, before, stopping);
  return paired_difference(compute_differences(before, now), stopping);
}

// How much wider the interval is than one of independent rounds. 0: not known yet.
double widening(const Weighed& weighed) {
  if (!weighed.rounds) return 1;
  const auto wide = weighed.rounds->interval(), usual = weighed.difference.interval();
  if (!wide || !usual || usual->high == usual->low) return 0;
  return (wide->high - wide->low) / (usual->high - usual->low);
}

// How many rounds, sessions or runs of each side would decide a change of the threshold from none
// at this noise; 0: more than 100.
int units_needed(const Weighed& weighed, const QuantityInfo& info) {
  constexpr int kMost = 100;
  const double threshold = weighed.check.threshold;
  const double wanted = info.is_factor ? std::log1p(threshold) : threshold;
  const double wider = widening(weighed);
  if (wider == 0) return 0;
  const double spread = wider * weighed.difference.standard_error * std::sqrt(weighed.units);
  for (int units = static_cast<int>(kFewestRuns); units <= kMost; ++units) {
    const double quantile = weighed.difference.sequences > 0
                                ? anytime_quantile(static_cast<std::size_t>(units), kConfidence)
                                : t_quantile(units - 1);
    if (quantile * spread / std::sqrt(units) < wanted) return units;
  }
  return 0;
}

// "; about 12 rounds would decide". No number of runs tells what sessions differ in.
std::string sample_size_hint(const Weighed& weighed, const QuantityInfo& info) {
  const int units = units_needed(weighed, info);
  if (weighed.check.evidence == Replication::sessions) {
    const char* rerun = weighed.can_rerun ? " (--rerun)" : " in turns";
    return units == 0
               ? fmt::format("; fresh runs of both sides{} avoid the difference of sessions", rerun)
               : fmt::format(
                     "; about {} sessions of each side would decide, or fresh runs of both{}",
                     units, rerun);
  }
  if (units == 0) return "";
  return fmt::format(
      "; about {} {} would decide", units,
      weighed.check.evidence == Replication::paired ? "rounds" : "runs of each side");
}

// "slower by 10.0 %"
std::string change_phrase(const Check& check) {
  const QuantityInfo& info = quantity_info(check.quantity);
  return fmt::format("{} by {}", worse_word(info), change_text(*check.change, info));
}

std::string family_text(std::size_t checks) {
  return checks == 1 ? "" : fmt::format(" of {} checks together", checks);
}

void decide_worse(Weighed& weighed, std::size_t checks) {
  Check& check = weighed.check;
  const std::string together = family_text(checks);
  if (check.adjusted_p < kSignificance) {
    check.verdict = Verdict::regression;
    check.reason = fmt::format("{}, beyond the noise ({}{})", change_phrase(check),
                               p_phrase(check.adjusted_p), together);
  } else if (check.p < kSignificance) {
    check.reason =
        fmt::format("{}, beyond the noise by itself ({}), but not{} ({})", change_phrase(check),
                    p_phrase(check.p), together, p_phrase(check.adjusted_p));
  } else {
    check.reason = fmt::format("{}, within the noise ({}{})", change_phrase(check),
                               p_phrase(check.adjusted_p), together);
  }
  if (check.verdict == Verdict::undecided) {
    check.reason += sample_size_hint(weighed, quantity_info(check.quantity));
  }
}

// "slower by 20.3 %": with the runs that stand out.
std::string mean_phrase(const Check& check) {
  const QuantityInfo& info = quantity_info(check.quantity);
  return fmt::format("with them the mean is {} by {}", worse_word(info),
                     change_text(check.standing_out.change, info));
}

bool decide_hanging(Weighed& weighed, std::size_t checks) {
  Check& check = weighed.check;
  const StandingOut& out = check.standing_out;
  if (!out.is_worse_by(check.threshold) || out.adjusted_p >= kSignificance) return false;
  check.verdict = Verdict::regression;
  check.reason = fmt::format("{} ({}{}): {}", out.text, p_phrase(out.adjusted_p),
                             family_text(checks), mean_phrase(check));
  return true;
}

// Why runs that stand out, or that may yet, forbid a pass. Empty: they do not.
std::string hanging_reason(const Weighed& weighed) {
  const Check& check = weighed.check;
  const StandingOut& out = check.standing_out;
  if (out.is_worse_by(check.threshold)) {
    const QuantityInfo& info = quantity_info(check.quantity);
    const char* cure = check.evidence != Replication::paired ? "; fresh runs of both sides decide"
                       : weighed.rounds                      ? "; more rounds decide"
                                        : "; more rounds decide (--until-decided)";
    return fmt::format("{}: {}, without them the change is {}{}", out.text, mean_phrase(check),
                       signed_change_text(*check.change, info), cure);
  }
  if (!weighed.rounds || check.quantity != Quantity::time) return "";
  const bool is_more = out.current > out.baseline;
  const std::size_t enough = is_more
                                 ? runs_that_exclude(kHangsToSee + weighed.usual_share, out.current)
                                 : runs_that_exclude(kHangsToSee, 0);
  const bool is_last = weighed.compared.rounds_made >= weighed.most_rounds;
  if (out.rounds >= enough || (!is_more && is_last)) return "";
  return fmt::format(
      "{}not slower so far, but {} rounds can miss that 1 of {:.0f} runs hangs; {} rounds show it",
      is_more ? out.text + ": " : "", out.rounds, 1 / kHangsToSee, enough);
}

// A change for the worse that is certain, and too small to matter.
void pass(Check& check, std::size_t checks) {
  const QuantityInfo& info = quantity_info(check.quantity);
  constexpr double kShown = 0.0005;  // less would be written as 0
  check.verdict = Verdict::pass;
  if (*check.change < kShown || check.adjusted_p >= kSignificance) return;
  check.is_worse_below_threshold = true;
  check.reason = fmt::format("{}, beyond the noise ({}{}), below the threshold of {}",
                             change_phrase(check), p_phrase(check.adjusted_p), family_text(checks),
                             change_text(check.threshold, info));
}

constexpr std::size_t kFewest = 4;

// The variance of one value of a difference.
double compute_variance(const Difference& difference) {
  return difference.standard_error * difference.standard_error *
         static_cast<double>(difference.count);
}

// The x > 0 with trigamma(x) = y, by Newton's method on 1 / trigamma, which is nearly a line
// (Smyth's appendix).
double trigamma_inverse(double y) {
  constexpr double kAlmostNone = 1e-7, kAlmostAll = 1e7;
  if (y > kAlmostAll) return 1 / std::sqrt(y);
  if (y < kAlmostNone) return 1 / y;
  double x = 0.5 + 1 / y;
  for (int i = 0; i < 50; ++i) {
    const double trigamma = boost::math::trigamma(x);
    const double step = trigamma * (1 - trigamma / y) / boost::math::polygamma(2, x);
    x += step;
    if (-step / x < 1e-9) break;
  }
  return x;
}

// The variance that is usual, with at most the degrees of freedom that `all` have together.
VarianceOfOthers usual_among(const std::vector<Difference*>& differences, double all) {
  const auto count = static_cast<double>(differences.size());
  std::vector<double> logs;
  double mean = 0, expected_spread = 0;
  for (const Difference* each : differences) {
    const double half = each->degrees_of_freedom / 2;
    logs.push_back(std::log(compute_variance(*each)) - boost::math::digamma(half) + std::log(half));
    mean += logs.back() / count;
    expected_spread += boost::math::trigamma(half) / count;
  }
  double spread = 0;
  for (const double value : logs) spread += (value - mean) * (value - mean) / (count - 1);
  if (spread <= expected_spread) {
    return {std::exp(mean), all, all};
  }
  const double half = trigamma_inverse(spread - expected_spread);
  return {std::exp(mean + boost::math::digamma(half) - std::log(half)), std::min(2 * half, all),
          all};
}

}  // namespace

bool StandingOut::is_worse_by(double threshold) const {
  return !text.empty() && change > threshold - kRounding;
}

Weighed weigh_samples(const std::string& subject, const QuantityInfo& info, const Samples& baseline,
                      const Samples& current, const GateOptions& options, const SideNames& names) {
  Weighed result;
  result.compared = samples_to_compare(baseline, current, info, names);
  const Samples before = std::exchange(result.compared.baseline, {}),
                now = std::exchange(result.compared.current, {});
  Check& check = result.check;
  check.subject = subject;
  check.quantity = info.quantity;
  check.threshold = options.thresholds.at(info.quantity);
  check.evidence = choose_evidence(before, info, result.compared.is_paired);
  check.baseline_runs = before.size();
  check.current_runs = now.size();
  check.baseline_sessions = count_sessions(before);
  check.current_sessions = count_sessions(now);
  check.busy_left_aside = result.compared.busy;
  check.outlying_left_aside = result.compared.outlying;
  check.standing_out = std::exchange(result.compared.standing_out, {});
  const auto units_before = unit_values(before, info, check.evidence);
  const auto units_now = unit_values(now, info, check.evidence);
  check.baseline = compute_mean(units_before, info);
  check.current = compute_mean(units_now, info);
  result.difference = compute_difference(units_before, units_now, check.evidence, options.stopping);
  if (check.evidence == Replication::sessions) {
    result.difference.count = std::min(before.size(), now.size());
  }
  const bool is_paired = check.evidence == Replication::paired;
  const bool looks = options.stopping == Stopping::by_results && is_paired;
  if (looks && info.is_of_machine) {
    result.rounds.emplace(compute_differences(units_before, units_now));
    result.most_rounds = options.most_rounds;
  }
  if (StandingOut& out = check.standing_out; is_paired) {
    out.p = p_of_more_standing_out(out.current, out.baseline, out.rounds,
                                   looks ? std::max(out.rounds, options.most_rounds) : 0);
  }
  result.units = 2 / (1 / static_cast<double>(units_before.size()) +
                      1 / static_cast<double>(units_now.size()));
  return result;
}

void fill_in(Weighed& weighed) {
  Check& check = weighed.check;
  check.difference = weighed.difference;
  if (check.evidence == Replication::none) return;
  const QuantityInfo& info = quantity_info(check.quantity);
  const auto change = [&](double difference) {
    return info.is_factor ? std::exp(difference) - 1 : difference;
  };
  check.change = change(weighed.difference.mean);
  const auto interval = weighed.rounds ? weighed.rounds->interval() : weighed.difference.interval();
  if (interval) check.interval = transformed(*interval, change);
  const bool counts = weighed.difference.count >= kFewestRuns;
  if (counts && std::abs(*check.change) > kRounding) {
    check.p = weighed.rounds ? weighed.rounds->p_value() : weighed.difference.p_value();
  }
}

void decide(Weighed& weighed, std::size_t checks) {
  Check& check = weighed.check;
  const QuantityInfo& info = quantity_info(check.quantity);
  if (!weighed.compared.why_undecidable.empty()) {
    check.reason = weighed.compared.why_undecidable;
    check.more_rounds_help = !weighed.compared.is_surely_the_current;
    return;
  }
  if (weighed.difference.count < kFewestRuns) {
    check.reason = fmt::format("{} and {} runs: at least {} of each decide", check.baseline_runs,
                               check.current_runs, kFewestRuns);
    return;
  }
  if (check.evidence == Replication::apart) {
    check.reason = fmt::format(
        "fresh runs of both sides{} decide, or {} sessions of the baseline: the sides share no "
        "session, and the baseline has {}",
        weighed.can_rerun ? " (--rerun)" : " in turns", kFewestSessions, check.baseline_sessions);
    return;
  }
  if (weighed.rounds && weighed.rounds->resemblance() > kMostResemblance) {
    check.reason = fmt::format(
        "rounds resemble their neighbours too much to decide (correlation about {:.1f}; at most {} "
        "is allowed for)",
        weighed.rounds->resemblance(), kMostResemblance);
    return;
  }
  const bool is_worse = *check.change > check.threshold - kRounding;
  if (is_worse) decide_worse(weighed, checks);
  if (check.verdict == Verdict::regression || decide_hanging(weighed, checks) || is_worse) return;
  if (!check.interval) {
    check.reason = "too few rounds for an anytime-valid interval";
    return;
  }
  const double bound = check.interval->high;
  if (bound >= 2 * check.threshold) {
    check.reason = fmt::format("too noisy: it may be {} by up to {}", worse_word(info),
                               change_text(bound, info)) +
                   sample_size_hint(weighed, info);
  } else if (weighed.compared.is_surely_the_current) {
    check.reason = weighed.compared.one_sided;
    check.more_rounds_help = false;
  } else if (check.reason = hanging_reason(weighed); check.reason.empty()) {
    pass(check, checks);
  }
}

void moderate(const std::vector<Difference*>& all) {
  std::vector<Difference*> differences;
  double most = 0;  // degrees of freedom that there are in all
  for (Difference* each : all) {
    if (each->degrees_of_freedom <= 0 || each->standard_error == 0) continue;
    differences.push_back(each);
    most += each->degrees_of_freedom;
  }
  if (differences.size() < kFewest) return;
  const VarianceOfOthers usual = usual_among(differences, most);
  for (Difference* each : differences) {
    *each = moderated(*each, usual);
    each->degrees_of_freedom = std::min(each->degrees_of_freedom, most);
  }
}

}  // namespace paceline

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "analysis/gate/weigh.h"
#include "analysis/statistics/robust.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/text.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

using RoundSet = std::set<RoundKey>;

std::size_t count_busy(const Samples& samples) {
  return count_where(samples, &Sample::is_busy);
}

RoundSet busy_rounds(const Samples& samples) {
  RoundSet rounds;
  for (const Sample& sample : samples) {
    if (sample.is_busy) rounds.insert(round_key(sample));
  }
  return rounds;
}

RoundSet without(const RoundSet& rounds, const RoundSet& others) {
  RoundSet left;
  std::set_difference(rounds.begin(), rounds.end(), others.begin(), others.end(),
                      std::inserter(left, left.end()));
  return left;
}

// Two-sided: that a fair coin falls so unevenly.
double sign_test(std::size_t heads, std::size_t tails) {
  const std::size_t all = heads + tails;
  double chance = std::pow(0.5, static_cast<double>(all)), p = 0;
  for (std::size_t k = 0; k <= std::min(heads, tails); ++k) {
    p += 2 * chance;
    chance *= static_cast<double>(all - k) / static_cast<double>(k + 1);
  }
  return std::min(1.0, p);
}

std::string share_text(std::size_t busy, std::size_t runs, const std::string& side) {
  return fmt::format("{} of {} runs of the {} side", busy, runs, side);
}

void find_one_sided(Compared& compared, const RoundSet& only_before, const RoundSet& only_now,
                    const SideNames& names) {
  constexpr double kReportedP = 0.3;  // 3 rounds of one side, none of the other
  const double p = sign_test(only_before.size(), only_now.size());
  if (p >= kReportedP) return;
  const bool is_now = only_now.size() > only_before.size();
  const Samples& more = is_now ? compared.current : compared.baseline;
  const Samples& less = is_now ? compared.baseline : compared.current;
  const std::size_t others = count_busy(less);
  compared.one_sided = fmt::format(
      "other processes kept the CPUs busy in {}{}: are they its own?",
      share_text(count_busy(more), more.size(), is_now ? names.current : names.baseline),
      others == 0
          ? " only"
          : fmt::format(" and in {} of the {}", others, is_now ? names.baseline : names.current));
  compared.is_surely_the_current = is_now && p < 1 - kConfidence;
}

std::string uneven_text(const Compared& compared, const SideNames& names) {
  return fmt::format(
      "the machine was busy in {} and in {}, and too few quiet {} are left: at least {} of each "
      "decide",
      share_text(count_busy(compared.current), compared.current.size(), names.current),
      share_text(count_busy(compared.baseline), compared.baseline.size(), names.baseline),
      compared.is_paired ? "rounds" : "runs", kFewestRuns);
}

// The number of runs left aside.
std::size_t keep_rounds(Compared& compared, const RoundSet& rounds) {
  const std::size_t before = compared.baseline.size() + compared.current.size();
  compared.baseline = samples_in(compared.baseline, rounds);
  compared.current = samples_in(compared.current, rounds);
  return before - compared.baseline.size() - compared.current.size();
}

void exclude_busy_rounds(Compared& compared, const SideNames& names) {
  const RoundSet all = list_rounds(compared.baseline), before = busy_rounds(compared.baseline),
                 now = busy_rounds(compared.current);
  const RoundSet only_before = without(before, now), only_now = without(now, before);
  const RoundSet quiet = without(without(all, before), now);
  const RoundSet alike = without(without(all, only_before), only_now);
  find_one_sided(compared, only_before, only_now, names);
  const bool is_enough = quiet.size() >= kFewestRuns;
  if (!is_enough && alike.size() < kFewestRuns) {
    compared.why_undecidable =
        compared.one_sided.empty() ? uneven_text(compared, names) : compared.one_sided;
    return;
  }
  const RoundSet& kept = is_enough ? quiet : alike;
  if (kept.size() == all.size()) return;
  compared.busy = keep_rounds(compared, kept);
  compared.notes.push_back(
      fmt::format("{} of {} rounds left aside: other processes kept the CPUs busy{}",
                  all.size() - kept.size(), all.size(), is_enough ? "" : " on one side"));
}

void exclude_busy_runs(Compared& compared, const SideNames& names) {
  constexpr double kEven = 0.1;  // shares of busy runs that differ by less
  const auto quiet_samples = [](const Samples& samples) {
    Samples quiet;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(quiet),
                 [](const Sample& sample) { return !sample.is_busy; });
    return quiet;
  };
  const auto share = [](const Samples& samples) {
    return static_cast<double>(count_busy(samples)) / static_cast<double>(samples.size());
  };
  const Samples before = quiet_samples(compared.baseline), now = quiet_samples(compared.current);
  // As many sessions as decide, where there were as many.
  const std::size_t sessions = std::min(count_sessions(compared.baseline), kFewestSessions);
  if (before.size() >= kFewestRuns && now.size() >= kFewestRuns &&
      count_sessions(before) >= sessions) {
    const std::size_t busy_before = count_busy(compared.baseline),
                      busy_now = count_busy(compared.current);
    compared.notes.push_back(
        fmt::format("{} and {} left aside: other processes kept the CPUs busy",
                    share_text(busy_now, compared.current.size(), names.current),
                    share_text(busy_before, compared.baseline.size(), names.baseline)));
    compared.busy = busy_before + busy_now;
    compared.baseline = before;
    compared.current = now;
  } else if (std::abs(share(compared.baseline) - share(compared.current)) >= kEven) {
    compared.why_undecidable = uneven_text(compared, names);
  }
}

// Smaller deviations are noise, however quiet the others are: 10 % of a time.
double least_outlying(const QuantityInfo& info) {
  return 4 * info.threshold;
}

// Runs that stand out of the others, by how far.
class OutlyingRuns {
 public:
  void add(bool is_current, double deviation) {
    (is_current ? current_ : baseline_).push_back(deviation);
  }

  // "1 of 5 runs of the new side took 1.95 times as long, none of the old"
  std::string text(const Samples& baseline, const Samples& current, const SideNames& names,
                   const QuantityInfo& info) const {
    const bool is_current = current_.size() >= baseline_.size();
    const std::vector<double>&most = is_current ? current_ : baseline_,
          &others = is_current ? baseline_ : current_;
    if (most.empty()) return "";
    const std::string& other = is_current ? names.baseline : names.current;
    return share_text(most.size(), (is_current ? current : baseline).size(),
                      is_current ? names.current : names.baseline) +
           how_far(most, info) + ", " +
           (others.empty()
                ? "none of the " + other
                : fmt::format("{} of the {}{}", others.size(), other, how_far(others, info)));
  }

 private:
  static std::string how_far(const std::vector<double>& deviations, const QuantityInfo& info) {
    const auto [low, high] = std::ranges::minmax(deviations);
    const auto number = [&](double deviation) {
      return info.is_factor ? fmt::format("{:.2f}", std::exp(deviation))
                            : fmt::format("{:+.3f}", info.more_is_worse ? deviation : -deviation);
    };
    const std::string range =
        number(low) == number(high) ? number(low) : number(low) + " to " + number(high);
    return info.is_factor ? fmt::format(" took {} times as long", range)
                          : fmt::format(" had a {} that is off by {}", info.heading, range);
  }

  std::vector<double> baseline_, current_;
};

double arithmetic_mean(const Samples& samples) {
  return average(mapped(samples, &Sample::value));
}

double change_of_means(const Compared& compared, const QuantityInfo& info) {
  const double before = arithmetic_mean(compared.baseline), now = arithmetic_mean(compared.current);
  if (info.is_factor) return now / before - 1;
  return info.more_is_worse ? now - before : before - now;
}

void exclude_outlying_rounds(Compared& compared, const QuantityInfo& info, const SideNames& names) {
  std::vector<double> before, now, differences;
  std::vector<RoundKey> keys;
  const auto of_current = means_of_rounds(compared.current, info);
  for (const auto& [key, value] : means_of_rounds(compared.baseline, info)) {
    keys.push_back(key);
    before.push_back(value);
    now.push_back(of_current.at(key));
    differences.push_back(now.back() - value);
  }
  const auto found = standing_out(differences, least_outlying(info));
  StandingOut& result = compared.standing_out;
  result.rounds = keys.size();
  if (found.empty()) return;
  const double middle = median(differences), middle_before = median(before),
               middle_now = median(now);
  OutlyingRuns runs;
  RoundSet kept(keys.begin(), keys.end());
  for (const std::size_t i : found) {
    const double deviation = differences[i] - middle;
    ++(deviation > 0 ? result.current : result.baseline);
    const bool is_current = std::abs(now[i] - middle_now) >= std::abs(before[i] - middle_before);
    runs.add(is_current, is_current ? deviation : -deviation);
    kept.erase(keys[i]);
  }
  result.text = runs.text(compared.baseline, compared.current, names, info);
  result.change = change_of_means(compared, info);
  if (found.size() > most_outlying(keys.size())) return;
  compared.outlying = found.size();
  keep_rounds(compared, kept);
}

// Deviations from the median of the session, of sessions with runs enough to have one.
std::vector<double> deviations_in_sessions(const Samples& samples, const QuantityInfo& info) {
  constexpr std::size_t kFewest = 4;
  std::map<std::string, std::vector<double>> by_session;
  for (const Sample& sample : samples) {
    by_session[sample.session].push_back(scaled(sample.value, info));
  }
  std::vector<double> deviations;
  for (const Sample& sample : samples) {
    const auto& session = by_session.at(sample.session);
    deviations.push_back(session.size() < kFewest ? std::nan("")
                                                  : scaled(sample.value, info) - median(session));
  }
  return deviations;
}

std::size_t erase_outlying(Samples& samples, bool is_current, const QuantityInfo& info,
                           OutlyingRuns& runs) {
  const std::vector<double> deviations = deviations_in_sessions(samples, info);
  std::vector<double> known;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < deviations.size(); ++i) {
    if (std::isnan(deviations[i])) continue;
    known.push_back(deviations[i]);
    places.push_back(i);
  }
  const auto found = outlying(known, least_outlying(info));
  for (auto each = found.rbegin(); each != found.rend(); ++each) {
    runs.add(is_current, known[*each]);
    samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(places[*each]));
  }
  return found.size();
}

void exclude_outlying_runs(Compared& compared, const QuantityInfo& info, const SideNames& names) {
  OutlyingRuns runs;
  const Compared all = compared;
  StandingOut& result = compared.standing_out;
  result.baseline = erase_outlying(compared.baseline, false, info, runs);
  result.current = erase_outlying(compared.current, true, info, runs);
  result.rounds = all.current.size();
  compared.outlying = result.baseline + result.current;
  if (compared.outlying == 0) return;
  result.text = runs.text(all.baseline, all.current, names, info);
  result.change = change_of_means(all, info);
}

}  // namespace

Compared samples_to_compare(const Samples& baseline, const Samples& current,
                            const QuantityInfo& info, const SideNames& names) {
  Compared compared;
  compared.baseline = baseline;
  compared.current = current;
  const RoundSet rounds = shared_rounds(baseline, current);
  compared.is_paired = !rounds.empty();
  compared.rounds_made = rounds.size();
  if (compared.is_paired) {
    compared.baseline = samples_in(baseline, rounds);
    compared.current = samples_in(current, rounds);
  }
  if (!info.is_of_machine) return compared;
  if (count_busy(compared.baseline) + count_busy(compared.current) > 0) {
    (compared.is_paired ? exclude_busy_rounds : exclude_busy_runs)(compared, names);
  }
  (compared.is_paired ? exclude_outlying_rounds : exclude_outlying_runs)(compared, info, names);
  return compared;
}

}  // namespace paceline

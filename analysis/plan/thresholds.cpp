#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/document/columns.h"
#include "analysis/gate/quantity.h"
#include "analysis/gate/weigh.h"
#include "analysis/plan/design.h"
#include "analysis/plan/noise.h"
#include "engine/core/random.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kPower = 0.95;

// Upwards, to 2 digits.
double rounded_up(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::ceil(value / unit - kRounding) * unit;
}

std::optional<double> smallest_threshold(double noise, bool is_factor, int rounds,
                                         std::size_t others) {
  const auto is_enough = [&](double threshold) {
    const Limits limits = make_limits(threshold, is_factor);
    return chance_confirmed(limits, Rounds{rounds, noise}, limits.twice_threshold, others) >=
           kPower;
  };
  double low = 0, high = 1;
  if (!is_enough(high)) return std::nullopt;
  while (high - low > 1e-4 * high) {
    const double middle = (low + high) / 2;
    (is_enough(middle) ? high : low) = middle;
  }
  const double threshold = rounded_up(high);
  return threshold <= 1 ? std::optional(threshold) : std::nullopt;
}

// 2 digits also of little noise.
std::string noise_text(double noise, const QuantityInfo& info) {
  if (noise >= 0.1) return change_text(noise, info);
  return info.is_factor ? fmt::format("{:.2g} %", noise * 100) : fmt::format("{:.2g}", noise);
}

std::string threshold_text(double threshold, const QuantityInfo& info) {
  return info.is_factor ? fmt::format("{:g}%", threshold * 100) : fmt::format("{:g}", threshold);
}

double deviation_of_pair(const Difference& difference) {
  return difference.standard_error * std::sqrt(static_cast<double>(difference.count));
}

// An upper bound of the standard deviation of one value of the difference.
double noise_of_pair(const Difference& difference) {
  return upper_sd(deviation_of_pair(difference), difference.degrees_of_freedom);
}

// The rounds that were made, of which as many are left aside as is likely by those that were.
Rounds rounds_of(const Check& check, double sd) {
  const StandingOut& out = check.standing_out;
  if (out.baseline + out.current == 0) return {static_cast<int>(check.difference.count), sd};
  return {static_cast<int>(check.difference.count + check.outlying_left_aside), sd,
          likely_share(out.baseline + out.current, out.rounds)};
}

// The checks of time that have an interval.
std::vector<const Check*> judged_times(const Judgement& judgement) {
  std::vector<const Check*> checks;
  for (const Check& check : judgement.checks) {
    const bool is_judged = check.quantity == Quantity::time && check.interval &&
                           check.difference.degrees_of_freedom > 0 &&
                           check.difference.standard_error > 0;
    if (is_judged) checks.push_back(&check);
  }
  return checks;
}

}  // namespace

std::optional<double> seen_slowdown(const Judgement& judgement, const GateKind& kind) {
  const std::vector<const Check*> checks = judged_times(judgement);
  // How long a gate that runs until it is decided would have gone on is not known from records.
  const bool is_unknown = judgement.is_sequential && kind.most_rounds == 0;
  if (checks.empty() || is_unknown) return std::nullopt;
  const Check& noisiest = **std::ranges::max_element(checks, [](const Check* a, const Check* b) {
    return a->difference.standard_error < b->difference.standard_error;
  });
  const Difference& difference = noisiest.difference;
  const Limits limits = make_limits(noisiest.threshold, true);
  const std::size_t tests = judgement.checks.size(), others = checks.size() - 1;
  const double sd = noise_of_pair(difference);
  const Precise precise{sd / std::sqrt(static_cast<double>(difference.count)),
                        difference.degrees_of_freedom};
  const Rounds rounds = rounds_of(noisiest, sd);
  const double seen = smallest_seen(
      [&](double effect) {
        constexpr int kGates = 500;
        if (kind.most_rounds > 0) {
          return until_decided(limits, rounds, effect, tests, kind.most_rounds, kGates).regression;
        }
        return kind.has_fresh_runs ? chance_confirmed(limits, rounds, effect, others)
                                   : chance_of_regression(limits, precise, effect, tests);
      },
      kPower);
  return std::isfinite(seen) ? std::optional(std::expm1(seen)) : std::nullopt;
}

std::optional<double> red_if_rounds_resemble(const Judgement& judgement, const GateKind& kind,
                                             double correlation) {
  constexpr int kGates = 500;
  std::vector<const Check*> all = judged_times(judgement);
  std::erase_if(all, [](const Check* check) { return check->evidence != Replication::paired; });
  if (all.empty() || judgement.is_sequential) return std::nullopt;
  RandomSequence random(1, Stream::synthetic, 1);
  bool is_red = false;
  // Those that do not pass.
  const auto judge_equal = [&](const std::vector<const Check*>& checks, std::size_t tests) {
    std::vector<Difference> differences;
    for (const Check* check : checks) {
      double state = random.normal();
      std::vector<double> rounds;
      while (rounds.size() < check->difference.count) {
        rounds.push_back(state * deviation_of_pair(check->difference));
        state = correlation * state + std::sqrt(1 - correlation * correlation) * random.normal();
      }
      differences.push_back(paired_difference(rounds));
    }
    moderate(mapped(differences, [](Difference& each) { return &each; }));
    const std::vector<double> adjusted =
        holm_adjusted(mapped(differences, &Difference::p_value), tests);
    std::vector<const Check*> suspects;
    for (std::size_t i = 0; i < checks.size(); ++i) {
      const Limits limits = make_limits(checks[i]->threshold, true);
      const bool is_worse = differences[i].mean > limits.threshold;
      is_red = is_red || (is_worse && adjusted[i] < kSignificance);
      if (is_worse || differences[i].interval()->high >= limits.twice_threshold) {
        suspects.push_back(checks[i]);
      }
    }
    return suspects;
  };
  int red = 0;
  for (int gate = 0; gate < kGates; ++gate) {
    is_red = false;
    const auto suspects = judge_equal(all, judgement.checks.size());
    if (kind.has_fresh_runs) {
      is_red = false;
      judge_equal(suspects, suspects.size());
    }
    red += is_red;
  }
  return static_cast<double>(red) / kGates;
}

std::vector<Proposal> propose_thresholds(const Judgement& of_itself, int rounds) {
  std::vector<Proposal> proposals;
  for (const QuantityInfo& info : quantities()) {
    Proposal proposal;
    proposal.quantity = info.quantity;
    for (const Check& check : of_itself.checks) {
      const Difference& difference = check.difference;
      if (check.quantity != info.quantity || check.evidence != Replication::paired) continue;
      if (difference.degrees_of_freedom <= 0) continue;
      ++proposal.points;
      proposal.noise = std::max(proposal.noise, noise_of_pair(difference));
    }
    if (proposal.points == 0) continue;
    if (proposal.noise > kRounding) {
      proposal.threshold =
          smallest_threshold(proposal.noise, info.is_factor, rounds, proposal.points - 1);
    }
    proposals.push_back(proposal);
  }
  return proposals;
}

Section proposals_section(const std::vector<Proposal>& proposals, const Thresholds& now,
                          int rounds) {
  Section section;
  if (proposals.empty()) return section;
  std::vector<std::string> options;
  for (const Proposal& proposal : proposals) {
    if (!proposal.threshold) continue;
    const QuantityInfo& info = quantity_info(proposal.quantity);
    options.push_back(threshold_option(info) + " " + threshold_text(*proposal.threshold, info));
  }
  using Row = const Proposal&;
  section.table =
      ColumnsOf<Proposal>()
          .text("quantity", "quantity",
                [](Row r) { return std::string(quantity_info(r.quantity).heading); })
          .real("proposed", "from\nthis noise",
                [](Row r) {
                  if (r.noise <= kRounding) return Cell{"as it is"};
                  if (!r.threshold) return Cell{"too noisy"};
                  return Cell{threshold_text(*r.threshold, quantity_info(r.quantity)), r.threshold};
                })
          .real("now", "threshold\nnow",
                [&](Row r) {
                  const double threshold = now.at(r.quantity);
                  return Cell{threshold_text(threshold, quantity_info(r.quantity)), threshold};
                })
          .real("noise", "noise of\na pair",
                [](Row r) {
                  if (r.noise <= kRounding) return Cell{"none", 0};
                  return Cell{noise_text(r.noise, quantity_info(r.quantity)), r.noise};
                })
          .whole("points", "points", &Proposal::points)
          .table(proposals, "");
  if (!options.empty()) section.findings.emplace_back("paste: " + join(options, " "));
  section.notes.push_back(
      fmt::format("from this noise: {} rounds find a point that is worse by twice the threshold in "
                  "95 % of cases; noise: the upper bound (80 %) of the noisiest point",
                  rounds));
  return section;
}

std::string threshold_option(const QuantityInfo& info) {
  if (info.quantity == Quantity::time) return "--threshold";
  std::string key(info.key);
  std::ranges::replace(key, '_', '-');
  return "--" + key + "-threshold";
}

}  // namespace paceline

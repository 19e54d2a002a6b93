#include "analysis/study/loss_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "analysis/study/switches.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

struct CostPart {
  const char* label;
  double Costs::*cost;
};
constexpr std::array<CostPart, 6> kParts = {{{"input", &Costs::input},
                                             {"communication", &Costs::communication},
                                             {"straggler", &Costs::straggler},
                                             {"launch", &Costs::launch},
                                             {"compute", &Costs::compute},
                                             {"outside of steps", &Costs::outside}}};
constexpr std::size_t kCompute = 4;
constexpr double kWorthATerm = 0.005;  // smaller parts are listed together

// Of each run, for contrast(): the shares of the costs, then the logarithms of their sum, of the
// samples, and of the sum over that with a mended rank. So the mean of a row's cost is the
// geometric one that its speed-up is of.
constexpr std::size_t kTotal = kParts.size(), kSamples = kTotal + 1, kMended = kTotal + 2;

RowValues part_values(const Row& row, const std::vector<Costs>& costs) {
  std::size_t at = 0;
  return collect_values(row, [&](const Run& run) {
    const Costs& of_run = costs[at++];
    std::vector<double> values;
    for (const CostPart& part : kParts) values.push_back(of_run.*part.cost / of_run.total());
    values.push_back(std::log(of_run.total()));
    values.push_back(std::log(*run.samples()));
    values.push_back(-std::log1p(-of_run.of_slowest / of_run.total()));
    return values;
  });
}

double fitted_cost(const std::vector<double>& means, const std::vector<std::size_t>& costs) {
  double share = 0;
  for (const std::size_t cost : costs) share += means[cost];
  return share * std::exp(means[kTotal]);
}

double growth_of_all(const RowMeans& means) {
  return means[1][kTotal] - means[0][kTotal];
}

// By how much these costs make the logarithm of all costs grow.
double compute_growth(const RowMeans& means, const std::vector<std::size_t>& costs) {
  const double here = std::exp(means[1][kTotal]), base = std::exp(means[0][kTotal]);
  const double growth = growth_of_all(means);
  const double mean = std::abs(growth) < kRounding ? base : (here - base) / growth;
  return (fitted_cost(means[1], costs) - fitted_cost(means[0], costs)) / mean;
}

double growth_of_samples(const RowMeans& means) {
  return means[1][kSamples] - means[0][kSamples];
}

// The share of the efficiency that such a growth of the cost takes.
double lost_by(double growth) {
  return 1 - std::exp(-growth);
}

double rounded_points(double share) {
  return std::round(1000 * share) / 10;
}

}  // namespace

std::optional<std::vector<Costs>> record_costs(const Row& row, bool rates) {
  std::vector<Costs> all;
  for (const Run& run : row.runs) {
    const double compute = run.phase_sum->forward + run.phase_sum->backward + run.phase_sum->update;
    const bool has_warmup = rates && run->throughput->warmup_steps_excluded.value_or(0) > 0;
    if (!(compute > 0) || run.phase_ranks == 0 || !run.samples() || has_warmup) return std::nullopt;
    const double scale = run->layout.gpus / (run.phase_ranks * *run.samples());
    Costs& costs = all.emplace_back();
    costs.input = run.phase_sum->input * scale;
    costs.launch = run.phase_sum->other * scale;
    costs.communication = run.phase_sum->communication * scale;
    costs.compute = compute * scale;
    if (run.fit_seconds() && !rates) {
      costs.outside = (*run.fit_seconds() * run.phase_ranks - run.phase_sum->step) * scale;
    }
  }
  return all;
}

std::string points_text(const Judged& share, bool as_gain) {
  const double sign = as_gain ? -100 : 100;
  const Judged points = share.transformed([sign](double value) { return sign * value; });
  return points.match(
      [](const Known& known) {
        return fmt::format("{:.1f} [{:.1f}, {:.1f}]", known.value, known.interval.low,
                           known.interval.high);
      },
      [](double value, const WeakEvidence&) { return fmt::format("{:.1f}", value); });
}

std::string parts_text(const std::vector<Loss>& parts, double all, bool as_gain) {
  std::vector<const Loss*> listed;
  for (const Loss& part : parts) {
    if (std::abs(part.share.value()) >= kWorthATerm) listed.push_back(&part);
  }
  const double sign = as_gain ? -1 : 1;
  std::ranges::stable_sort(listed, [sign](const Loss* a, const Loss* b) {
    return sign * a->share.value() > sign * b->share.value();
  });
  std::vector<std::string> texts;
  double rest = rounded_points(sign * all);
  for (const Loss* part : listed) {
    texts.push_back(part->label + " " + points_text(part->share, as_gain));
    rest -= rounded_points(sign * part->share.value());
  }
  constexpr double kShown = 0.05;
  if (texts.empty()) return "no part above 0.5";
  if (listed.size() < parts.size() && std::abs(rest) >= kShown) {
    texts.push_back(fmt::format("others {:.1f}", rest));
  }
  return join(texts, ", ");
}

LossParts::LossParts(const Row& base, const std::vector<Costs>& base_costs, const Row& row,
                     const std::vector<Costs>& costs, bool is_bound)
    : rows_{part_values(base, base_costs), part_values(row, costs)},
      doubt_(find_weak_evidence(base, row)) {
  const Judged whole = judged_by(growth_of_all);
  all_ = whole.transformed(lost_by);
  // The parts share what is lost as they share the growth.
  if (std::abs(whole.value()) >= kRounding) scale_ = lost_by(whole.value()) / whole.value();
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (is_bound && kParts[i].cost == &Costs::straggler) continue;
    const bool waits = is_bound && kParts[i].cost == &Costs::communication;
    costs_.push_back(waits ? Indices{i, i + 1} : Indices{i});
    const Difference part = growth(costs_.back());
    const Judged grown = judged(part, doubt_);
    // No part is more than all of the cost, unless a record's phases contradict its whole.
    const double most = grown.value() * scale_ > 1 ? std::numeric_limits<double>::infinity() : 1;
    parts_.push_back({waits ? kWaiting : kParts[i].label,
                      grown.transformed([=, scale = scale_](double value) {
                        return std::min(most, value * scale);
                      }),
                      part.p_value()});
  }
}

Difference LossParts::growth(const Indices& costs) const {
  return contrast(rows_, [&](const RowMeans& means) { return compute_growth(means, costs); });
}

Judged LossParts::judged_by(const OfMeans& what) const {
  return judged(contrast(rows_, what), doubt_);
}

std::vector<Loss> LossParts::certain(std::size_t points, double sign) const {
  std::vector<double> p = mapped(parts_, &Loss::p);
  p = holm_adjusted(p, points * parts_.size());
  std::vector<Loss> found;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const bool counts = parts_[i].share.is_known() && p[i] < 1 - kConfidence;
    if (counts && sign * parts_[i].share.value() >= kWorthATerm) found.push_back(parts_[i]);
  }
  std::ranges::stable_sort(found, [sign](const Loss& a, const Loss& b) {
    return sign * a.share.value() > sign * b.share.value();
  });
  return found;
}

std::vector<Loss> LossParts::certain_losses(std::size_t points) const {
  return certain(points, 1);
}

std::vector<Loss> LossParts::certain_gains(std::size_t points) const {
  return certain(points, -1);
}

std::vector<std::string> LossParts::largest() const {
  const auto it = std::ranges::max_element(
      parts_, [](const Loss& a, const Loss& b) { return a.share.value() < b.share.value(); });
  const auto most = static_cast<std::size_t>(it - parts_.begin());
  std::vector<std::string> labels;
  if (!it->share.is_above(0)) return labels;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto less = [&](const RowMeans& means) {
      return compute_growth(means, costs_[most]) - compute_growth(means, costs_[i]);
    };
    const bool is_loss = parts_[i].share.is_above(0);
    if (i == most || (is_loss && !is_above(contrast(rows_, less), 0))) {
      labels.push_back(parts_[i].label);
    }
  }
  return labels;
}

Judged LossParts::compute_ratio() const {
  const auto logarithm = [](const RowMeans& means) {
    return std::log(fitted_cost(means[1], {kCompute}) / fitted_cost(means[0], {kCompute}));
  };
  return judged_by(logarithm).transformed([](double value) { return std::exp(value); });
}

Judged LossParts::all_but_compute() const {
  Indices others;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (i != kCompute) others.push_back(i);
  }
  return judged(growth(others), doubt_).transformed([scale = scale_](double value) {
    return value * scale;
  });
}

Judged LossParts::given_back() const {
  return judged_by([](const RowMeans& means) {
    const double growth = growth_of_all(means);
    return std::exp(means[1][kMended] - growth) - std::exp(-growth);
  });
}

Judged LossParts::samples() const {
  return judged_by(growth_of_samples);
}

Judged LossParts::samples_beyond_cost() const {
  return judged_by(
      [](const RowMeans& means) { return growth_of_samples(means) - growth_of_all(means); });
}

}  // namespace paceline

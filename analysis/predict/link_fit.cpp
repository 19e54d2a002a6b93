#include "analysis/predict/link_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/predict/nonnegative_fit.h"

namespace paceline {

namespace {

constexpr double kClearlyBetter = 0.9;
constexpr double kLeastScale = 0.05;  // of the longest all-reduce of as many replicas
constexpr double kNoTime = 1e-15;     // seconds a byte, where the fit leaves none for bytes

double predicted(const LinkNetwork& network, const SumSample& sample) {
  return sample.calls * network.seconds(sample.bytes / sample.calls, sample.replicas);
}

// What its error is divided by. Small messages may pass quicker than any line through the large
// ones says (buffers, eager protocols), and cost little.
double find_scale(const SumSample& sample, const std::vector<SumSample>& samples) {
  double most = 0;
  for (const SumSample& each : samples) {
    if (each.replicas == sample.replicas) most = std::max(most, each.seconds);
  }
  return std::max(sample.seconds, kLeastScale * most);
}

double compute_misfit(const LinkNetwork& network, const std::vector<SumSample>& samples) {
  double sum = 0;
  for (const SumSample& sample : samples) {
    const double off = (predicted(network, sample) - sample.seconds) / find_scale(sample, samples);
    sum += off * off;
  }
  return std::sqrt(sum / static_cast<double>(samples.size()));
}

// The last level of `network` from samples that cross it; the levels inside are known.
void fit_last_level(LinkNetwork& network, const std::vector<SumSample>& samples, bool with_call) {
  const std::size_t last = network.levels.size() - 1;
  std::vector<CostPoint> points;
  for (const SumSample& sample : samples) {
    const auto traffic = network.traffic(sample.bytes / sample.calls, sample.replicas);
    double inside = sample.calls * network.call_seconds;
    for (std::size_t i = 0; i < last; ++i) {
      const LinkLevel& level = network.levels[i];
      inside += sample.calls * traffic[i].latencies * level.latency_seconds;
      if (network.form != SumForm::hierarchical) continue;
      inside += sample.calls * traffic[i].bytes / level.bytes_per_second;
    }
    CostPoint point;
    point.terms = {sample.calls * traffic[last].bytes, sample.calls * traffic[last].latencies};
    if (with_call) point.terms.push_back(sample.calls);
    // At least a tenth, so that a poor fit inside cannot turn the rest to nothing.
    point.value = std::max(sample.seconds - inside, sample.seconds / 10);
    point.scale = find_scale(sample, samples);
    points.push_back(point);
  }
  const std::vector<double> fit = nonnegative_fit(points);
  network.levels[last].bytes_per_second = 1 / std::max(fit[0], kNoTime);
  network.levels[last].latency_seconds = fit[1];
  if (with_call) network.call_seconds = fit[2];
}

bool several_sizes(const std::vector<SumSample>& samples) {
  return std::any_of(samples.begin(), samples.end(), [&](const SumSample& sample) {
    return sample.replicas != samples.front().replicas;
  });
}

LinkNetwork fitted(SumForm form, const std::vector<SumSample>& inside,
                   const std::vector<SumSample>& between, int replicas_per_node) {
  LinkNetwork network;
  network.form = form;
  if (!inside.empty()) {
    network.levels.push_back({"core", between.empty() ? 0 : replicas_per_node, 0, 1, 1});
    fit_last_level(network, inside, several_sizes(inside));
  }
  if (between.empty()) return network;
  if (inside.empty() && replicas_per_node > 1) {
    // Nothing tells what is inside a node from what is between: all of it is between.
    network.levels.push_back({"core", replicas_per_node, 0, 1 / kNoTime, 1});
  }
  network.levels.push_back({"node", 0, 0, 1, 1});
  fit_last_level(network, between, inside.empty() && several_sizes(between));
  return network;
}

}  // namespace

std::optional<FittedLinks> fit_links(const std::vector<SumSample>& samples, int replicas_per_node) {
  std::vector<SumSample> inside, between, used;
  for (const SumSample& sample : samples) {
    if (sample.replicas < 2 || sample.seconds <= 0) continue;
    (sample.nodes > 1 ? between : inside).push_back(sample);
    used.push_back(sample);
  }
  if (used.empty()) return std::nullopt;
  std::optional<FittedLinks> best;
  double next = std::numeric_limits<double>::infinity();
  for (const SumForm form : kSumForms) {
    FittedLinks links;
    links.network = fitted(form, inside, between, replicas_per_node);
    links.off = compute_misfit(links.network, used);
    if (!best || links.off < kClearlyBetter * best->off) {
      if (best) next = best->off;
      best = links;
    } else {
      next = std::min(next, links.off);
    }
  }
  best->form_is_known = best->off < kClearlyBetter * next;
  for (const SumSample& sample : used) {
    best->most_replicas = std::max(best->most_replicas, sample.replicas);
  }
  return best;
}

}  // namespace paceline

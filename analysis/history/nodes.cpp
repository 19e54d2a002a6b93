// What sessions on other nodes differ in, by neighbouring sessions on different nodes: a shift
// moves one such pair of many, and what neighbours have in common none. So levels and nodes are
// told apart, as long as nodes change to and fro.

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/evidence/covariates.h"
#include "analysis/history/series.h"
#include "engine/core/text.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr double kMedianOfNormal = 0.6745;
constexpr std::size_t kFewestNeighbours = 6;

std::string nodes_of(const HistorySession& session) {
  return join({session.hosts.begin(), session.hosts.end()}, ", ");
}

// Of a session, from its differences of neighbours on the same nodes.
struct NeighbourNoise {
  double deviation = 0, degrees_of_freedom = 0;
};

NeighbourNoise noise_of_neighbours(const std::vector<double>& values,
                                   const std::vector<std::string>& nodes) {
  std::vector<double> differences;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (nodes[i] == nodes[i - 1]) differences.push_back(std::abs(values[i] - values[i - 1]));
  }
  if (differences.size() < kFewestNeighbours) return {};
  // Neighbouring differences share a session, and a median knows less than a mean of squares.
  const double freedom = static_cast<double>(differences.size()) / 3;
  return {median(differences) / kMedianOfNormal / std::sqrt(2.0), freedom};
}

Difference difference_of_nodes(const std::vector<double>& values,
                               const std::vector<std::string>& nodes, const std::string& usual,
                               const std::string& other, const NeighbourNoise& noise) {
  std::map<std::size_t, double> weights;  // of sessions
  Difference result;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const bool goes = nodes[i - 1] == usual && nodes[i] == other,
               returns = nodes[i - 1] == other && nodes[i] == usual;
    if (!goes && !returns) continue;
    const double sign = goes ? 1 : -1;
    result.mean += sign * (values[i] - values[i - 1]);
    weights[i] += sign;
    weights[i - 1] -= sign;
    ++result.count;
  }
  if (result.count < kFewestRuns) return result;
  double squares = 0;
  for (const auto& [session, weight] : weights) squares += weight * weight;
  const auto pairs = static_cast<double>(result.count);
  result.mean /= pairs;
  result.standard_error = noise.deviation * std::sqrt(squares) / pairs;
  result.degrees_of_freedom = noise.degrees_of_freedom;
  return result;
}

}  // namespace

void take_out_nodes(HistorySeries& series) {
  if (series.metric == HistoryMetric::accuracy) return;
  std::vector<std::string> nodes;
  std::map<std::string, std::size_t> counts;
  for (const HistorySession& session : series.sessions) {
    nodes.push_back(nodes_of(session));
    ++counts[nodes.back()];
  }
  if (counts.size() < 2 || counts.contains("")) return;
  const std::vector<double> values = series.scaled_values();
  const NeighbourNoise noise = noise_of_neighbours(values, nodes);
  if (!(noise.deviation > 0)) return;
  const std::string usual =
      std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
  const double level = kCovariateLevel / static_cast<double>(counts.size() - 1);
  for (const auto& [other, sessions] : counts) {
    if (other == usual) continue;
    const Difference found = difference_of_nodes(values, nodes, usual, other, noise);
    if (found.count < kFewestRuns || found.p_value() >= level) continue;
    series.node_differences.push_back({other, usual, found, sessions});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] == other) series.sessions[i].due_to_nodes = found.mean;
    }
  }
}

}  // namespace paceline

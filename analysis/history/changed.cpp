#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/evidence/covariates.h"
#include "analysis/history/history.h"
#include "analysis/history/series.h"
#include "engine/core/text.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr double kSeparates = 0.75, kAlways = 0.95;
constexpr std::size_t kMostValues = 2, kMostFacts = 6;

bool is_software(const std::string& name) {
  static const std::set<std::string> kSoftware = {
      "GPU", "modules", "build", "compiler", "library", "own program", "packages"};  // GPU: driver
  return kSoftware.contains(name);
}

using Texts = std::vector<std::string>;  // one per session; empty: not stated

struct FactOfSides {
  Texts before, after;
};

std::map<std::string, FactOfSides> collect_facts(const HistorySeries& series, std::size_t begin,
                                                 std::size_t earliest, std::size_t latest,
                                                 std::size_t end) {
  std::map<std::string, FactOfSides> facts;
  const auto side_at = [&](FactOfSides& sides, std::size_t i) -> std::string& {
    sides.before.resize(earliest - begin);
    sides.after.resize(end - latest);
    return i < earliest ? sides.before[i - begin] : sides.after[i - latest];
  };
  bool knows_hosts = true;
  std::set<std::string> hosts;
  for (std::size_t i = begin; i < end; i == earliest - 1 ? i = latest : ++i) {
    for (const auto& [name, text] : series.sessions[i].origin) side_at(facts[name], i) = text;
    const auto& own = series.sessions[i].hosts;
    knows_hosts = knows_hosts && !own.empty();
    hosts.insert(own.begin(), own.end());
  }
  if (!knows_hosts || hosts.size() < 2) return facts;
  for (const std::string& host : hosts) {
    for (std::size_t i = begin; i < end; i == earliest - 1 ? i = latest : ++i) {
      side_at(facts["host " + host], i) =
          series.sessions[i].hosts.contains(host) ? "used" : "not used";
    }
  }
  return facts;
}

std::size_t known(const Texts& texts) {
  return count_where(texts, [](const std::string& text) { return !text.empty(); });
}

double compute_separation(const FactOfSides& sides) {
  std::map<std::string, std::pair<double, double>> shares;
  for (const std::string& text : sides.before) {
    if (!text.empty()) shares[text].first += 1 / static_cast<double>(known(sides.before));
  }
  for (const std::string& text : sides.after) {
    if (!text.empty()) shares[text].second += 1 / static_cast<double>(known(sides.after));
  }
  double sum = 0;
  for (const auto& [text, share] : shares) sum += std::max(share.first, share.second);
  return sum / 2;
}

std::size_t changes_within(const Texts& texts) {
  std::size_t changes = 0;
  for (std::size_t i = 1; i < texts.size(); ++i) changes += texts[i] != texts[i - 1] ? 1 : 0;
  return changes;
}

// The values in order of appearance; of lists of two sides only the parts that differ.
std::string values_text(const Texts& texts, const Texts& others) {
  const auto split_path = [](const Texts& all) {
    std::set<std::string> parts;
    for (const std::string& text : all) {
      for (const std::string& part : split(text, ',')) parts.emplace(trim(part));
    }
    return parts;
  };
  const std::set<std::string> elsewhere = split_path(others);
  Texts shown;
  for (const std::string& text : each_once(texts)) {
    Texts parts;
    for (const std::string& part : split(text, ',')) {
      const std::string trimmed(trim(part));
      if (!trimmed.empty() && !elsewhere.contains(trimmed)) parts.push_back(trimmed);
    }
    if (!parts.empty()) shown.push_back(join(parts, ", "));
  }
  shown = each_once(shown);
  if (shown.empty()) shown = each_once(texts);
  std::erase(shown, "");
  if (shown.size() > kMostValues) {
    const std::size_t more = shown.size() - kMostValues;
    shown.resize(kMostValues);
    shown.back() += fmt::format(" and {} more", more);
  }
  return shown.empty() ? "not stated" : join(shown, "; ");
}

double sort_key(const ChangedFact& fact, std::size_t sessions) {
  return fact.separation - 0.5 * static_cast<double>(fact.elsewhere) /
                               static_cast<double>(std::max<std::size_t>(sessions - 2, 1));
}

// What sessions on other nodes differ in, by neighbouring sessions on different nodes: a shift
// moves one such pair of many, and what neighbours have in common none. So levels and nodes are
// told apart, as long as nodes change to and fro.

constexpr double kMedianOfNormal = 0.6745;
constexpr std::size_t kFewestNeighbours = 6;

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

Changes changes_across(const HistorySeries& series, std::size_t begin, std::size_t earliest,
                       std::size_t latest, std::size_t end) {
  Changes changes;
  const std::size_t sessions = (earliest - begin) + (end - latest);
  std::vector<std::pair<double, ChangedFact>> ranked;
  for (const auto& [name, sides] : collect_facts(series, begin, earliest, latest, end)) {
    if (known(sides.before) == 0 || known(sides.after) == 0) continue;
    const bool software = is_software(name);
    changes.knows_anything = true;
    changes.knows_software = changes.knows_software || software;
    ChangedFact fact{name, {}, {}, software, compute_separation(sides), 0, false};
    fact.elsewhere = changes_within(sides.before) + changes_within(sides.after);
    fact.at_shift = sides.before.back() != sides.after.front() && !sides.before.back().empty() &&
                    !sides.after.front().empty();
    const double rank = sort_key(fact, sessions);
    const bool is_host = name.starts_with("host ");
    if (rank < kSeparates && (!fact.at_shift || is_host)) continue;
    fact.before = values_text(sides.before, sides.after);
    fact.after = values_text(sides.after, sides.before);
    ranked.emplace_back(rank, std::move(fact));
  }
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.first > b.first; });
  if (ranked.size() > kMostFacts) ranked.resize(kMostFacts);
  for (auto& [rank, fact] : ranked) changes.facts.push_back(std::move(fact));
  return changes;
}

std::vector<std::string> make_sentences(const Changes& changes) {
  if (!changes.knows_anything) {
    return {"the records state nothing of software and nodes: what changed with it is not known"};
  }
  std::vector<std::string> sentences;
  for (const ChangedFact& fact : changes.facts) {
    std::string text = fmt::format("{}: {} -> {} (separates {:.0f} % of the sessions", fact.name,
                                   fact.before, fact.after, 100 * fact.separation);
    if (fact.elsewhere > 0) {
      text += fmt::format("; it also changed {} within these levels",
                          fact.elsewhere == 1 ? "once" : fmt::format("{} times", fact.elsewhere));
    }
    sentences.push_back(text + ")");
  }
  const bool software = std::ranges::any_of(changes.facts, &ChangedFact::is_software);
  std::string first = software                 ? "software changed with it"
                      : changes.knows_software ? "no recorded software changed with it"
                                               : "the records do not state the software";
  if (!software && changes.facts.empty()) first += ", and nothing else that is recorded";
  sentences.insert(sentences.begin(), first);
  const bool is_nodes = std::ranges::any_of(changes.facts, [](const ChangedFact& fact) {
    return fact.name.starts_with("host ") && fact.separation >= kAlways;
  });
  if (is_nodes)
    sentences.emplace_back("so did the nodes: they and the date cannot be distinguished");
  return sentences;
}

void take_out_nodes(HistorySeries& series) {
  if (series.metric == HistoryMetric::accuracy) return;
  std::vector<std::string> nodes;
  std::map<std::string, std::size_t> counts;
  for (const HistorySession& session : series.sessions) {
    nodes.push_back(join({session.hosts.begin(), session.hosts.end()}, ", "));
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

#include "analysis/predict/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "analysis/predict/laws.h"
#include "engine/core/json_field.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::array kLevelNames = {"core", "socket", "node", "switch"};
constexpr int kMostUnits = 1 << 24;

// How many units each level joins, and how many such groups there are.
struct Joined {
  int members = 1;  // of the fullest group
  int links = 0;    // of a chain through all of them
};

std::vector<Joined> joined_by(const std::vector<LinkLevel>& levels, int replicas) {
  std::vector<Joined> all;
  int units = replicas;
  for (const LinkLevel& level : levels) {
    const int most = level.units > 0 ? level.units : units;
    const int groups = (units + most - 1) / most;
    all.push_back({std::min(units, most), units - groups});
    units = groups;
  }
  return all;
}

double ring_latencies(int members, int links) {
  return members == 2 ? links : 2.0 * links;
}
double ring_bytes(double bytes, int members) {
  return 2 * bytes * (members - 1) / members;
}

constexpr EnumName<SumForm> kSumFormNames[] = {
    {SumForm::ring, "ring"}, {SumForm::tree, "tree"}, {SumForm::hierarchical, "hierarchical"}};

// No link is outside of these, and beyond them sums would overflow.
JsonFieldReader seconds_into(double& target) {
  return into(target, 0, 1e6);
}
JsonFieldReader count_into(int& target) {
  return into(target, 1, kMostUnits);
}

LinkLevel parse_level(const JsonField& field, bool is_last, const std::vector<LinkLevel>& before) {
  LinkLevel level;
  const std::vector<std::string> names(kLevelNames.begin(), kLevelNames.end());
  field.read({{"level", [&](const JsonField& name) { level.name = name.choice(names); }},
              {"units", count_into(level.units)},
              {"latency_seconds", seconds_into(level.latency_seconds)},
              {"bytes_per_second", into(level.bytes_per_second, 1, 1e18)},
              {"shared_by", count_into(level.shared_by)}});
  const JsonField name = field.at("level");
  if (!before.empty() &&
      std::ranges::find(names, level.name) <= std::ranges::find(names, before.back().name)) {
    name.fail(fmt::format("{} stands after {}", level.name, before.back().name),
              "give levels from the inner to the outer: " + join(names, ", "));
  }
  if (!is_last && !field.find("units")) {
    field.fail("\"units\" is missing", "say how many this level joins; only the last may be open");
  }
  for (const char* key : {"latency_seconds", "bytes_per_second"}) field.at(key);
  return level;
}

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
  return distinct(samples, &SumSample::replicas).size() > 1;
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

const char* to_string(SumForm form) {
  return name_in(kSumFormNames, form);
}

std::vector<LevelTraffic> LinkNetwork::traffic(double bytes, int replicas) const {
  std::vector<LevelTraffic> all;
  for (const auto& [members, links] : joined_by(levels, replicas)) {
    LevelTraffic level;
    if (members > 1) {
      switch (form) {
        case SumForm::ring:
          level = {ring_latencies(replicas, links), ring_bytes(bytes, replicas)};
          break;
        case SumForm::tree:
          level = {2 * std::ceil(std::log2(members)), replicas == 2 ? bytes : 2 * bytes};
          break;
        case SumForm::hierarchical:
          level = {ring_latencies(members, members - 1), ring_bytes(bytes, members)};
          break;
      }
    }
    all.push_back(level);
  }
  return all;
}

double LinkNetwork::seconds(double bytes, int replicas) const {
  if (replicas < 2) return 0;
  double latency = call_seconds, sum = 0, slowest = 0;
  const std::vector<LevelTraffic> all = traffic(bytes, replicas);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const LinkLevel& level = levels[i];
    latency += all[i].latencies * level.latency_seconds;
    const double moving = all[i].bytes * level.shared_by / level.bytes_per_second;
    sum += moving;
    slowest = std::max(slowest, moving);
  }
  return latency + (form == SumForm::hierarchical ? sum : slowest);
}

int LinkNetwork::highest_level(int replicas) const {
  const std::vector<Joined> all = joined_by(levels, replicas);
  for (auto i = static_cast<int>(all.size()); i-- > 0;) {
    if (all[static_cast<std::size_t>(i)].members > 1) return i;
  }
  return -1;
}

std::optional<int> LinkNetwork::capacity() const {
  double most = 1;
  for (const LinkLevel& level : levels) {
    if (level.units == 0) return std::nullopt;
    most *= level.units;
  }
  return static_cast<int>(std::min(most, 1e9));
}

LinkNetwork parse_network(const std::string& text, const std::string& where) {
  const JsonDocument document(where, without_comments(text));
  const JsonField root(document, "see docs/predict.md");
  LinkNetwork network;
  const auto read_levels = [&](const JsonField& field) {
    const auto levels = field.elements();
    for (const JsonField& level : levels) {
      const bool is_last = network.levels.size() + 1 == levels.size();
      network.levels.push_back(parse_level(level, is_last, network.levels));
    }
  };
  root.read({{"form", into(network.form, kSumFormNames)},
             {"call_seconds", seconds_into(network.call_seconds)},
             {"levels", read_levels}});
  if (network.levels.empty()) {
    root.fail("there are no levels", "give \"levels\": [{\"level\": \"node\", ...}]");
  }
  return network;
}

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
    FittedLinks links{.network = fitted(form, inside, between, replicas_per_node)};
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

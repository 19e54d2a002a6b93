#include "analysis/predict/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/predict/laws.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
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

// Reads a description; every complaint names the line of its key.
class Description {
 public:
  Description(const std::string& text, const std::string& where)
      : document_(where, without_comments(text)) {}

  LinkNetwork read() const {
    const Json& json = document_.value();
    if (!json.is_object()) complain("", "a network is an object", "see docs/predict.md");
    check_keys(json, "", {"form", "call_seconds", "levels"});
    LinkNetwork network;
    if (json.contains("form")) network.form = parse_form(json["form"]);
    if (json.contains("call_seconds")) network.call_seconds = number(json, "", "call_seconds");
    if (!json.contains("levels") || !json["levels"].is_array() || json["levels"].empty()) {
      complain(json.contains("levels") ? "/levels" : "", "there are no levels",
               "give \"levels\": [{\"level\": \"node\", ...}]");
    }
    for (std::size_t i = 0; i < json["levels"].size(); ++i) {
      network.levels.push_back(level(json["levels"][i], fmt::format("/levels/{}", i),
                                     i + 1 == json["levels"].size(), network.levels));
    }
    return network;
  }

 private:
  [[noreturn]] void complain(const std::string& path, const std::string& what,
                             const std::string& hint) const {
    throw Error(ErrorKind::input, what, document_.where(path), hint);
  }

  void check_keys(const Json& json, const std::string& path,
                  const std::vector<std::string>& known) const {
    for (const auto& item : json.items()) {
      if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
      complain(path + "/" + item.key(), fmt::format("unknown key \"{}\"", item.key()),
               suggestion(item.key(), known));
    }
  }

  SumForm parse_form(const Json& json) const {
    std::vector<std::string> names;
    for (const SumForm form : kSumForms) {
      if (json.is_string() && json == to_string(form)) return form;
      names.emplace_back(to_string(form));
    }
    complain("/form", "form is " + join(names, ", "),
             json.is_string() ? suggestion(json.get<std::string>(), names) : "give one of them");
  }

  double number(const Json& json, const std::string& path, const char* key) const {
    const std::string at = path + "/" + key;
    if (!json.contains(key)) complain(path, fmt::format("\"{}\" is missing", key), "give it");
    const bool is_number = json[key].is_number();
    const double value = is_number ? json[key].get<double>() : 0;
    const bool is_time = std::string_view(key).ends_with("_seconds");
    // No link is outside of these, and beyond them sums would overflow.
    const double least = is_time ? 0 : 1, most = is_time ? 1e6 : 1e18;
    if (!is_number || !(value >= least && value <= most)) {
      complain(at, fmt::format("{} must be a number from {:g} to {:g}", key, least, most),
               "give it in the unit of its name");
    }
    return value;
  }

  int count(const Json& json, const std::string& path, const char* key) const {
    const bool whole = json[key].is_number_integer() && json[key] >= 1 && json[key] <= kMostUnits;
    if (!whole) {
      complain(path + "/" + key,
               fmt::format("{} must be a whole number from 1 to {}", key, kMostUnits),
               "leave it out where it does not apply");
    }
    return json[key].get<int>();
  }

  LinkLevel level(const Json& json, const std::string& path, bool last,
                  const std::vector<LinkLevel>& before) const {
    if (!json.is_object()) complain(path, "a level is an object", "see docs/predict.md");
    check_keys(json, path, {"level", "units", "latency_seconds", "bytes_per_second", "shared_by"});
    LinkLevel made;
    const std::vector<std::string> names(kLevelNames.begin(), kLevelNames.end());
    if (json.contains("level") && json["level"].is_string()) made.name = json["level"];
    const auto found = std::find(names.begin(), names.end(), made.name);
    if (found == names.end()) {
      complain(json.contains("level") ? path + "/level" : path, "level is " + join(names, ", "),
               suggestion(made.name, names));
    }
    if (!before.empty() && found <= std::find(names.begin(), names.end(), before.back().name)) {
      complain(path + "/level", fmt::format("{} stands after {}", made.name, before.back().name),
               "give levels from the inner to the outer: " + join(names, ", "));
    }
    if (json.contains("units")) {
      made.units = count(json, path, "units");
    } else if (!last) {
      complain(path, "\"units\" is missing",
               "say how many this level joins; only the last may be open");
    }
    made.latency_seconds = number(json, path, "latency_seconds");
    made.bytes_per_second = number(json, path, "bytes_per_second");
    if (json.contains("shared_by")) made.shared_by = count(json, path, "shared_by");
    return made;
  }

  JsonDocument document_;
};

}  // namespace

constexpr EnumName<SumForm> kSumFormNames[] = {
    {SumForm::ring, "ring"}, {SumForm::tree, "tree"}, {SumForm::hierarchical, "hierarchical"}};

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
  return Description(text, where).read();
}

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

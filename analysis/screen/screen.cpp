#include "analysis/screen/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "engine/core/text.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

// Devices, nodes, links: a third of the rate each, since a machine without a fault has all three.
constexpr double kFamilies = 3;
// Their efficiencies for normal values, as which degrees of freedom count.
constexpr double kOfQn = 0.82, kOfMedianDeviation = 0.37;

// Below the median of an even number: of two partners one may be slow itself.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

struct ScreenSpread {
  double value = 0, degrees_of_freedom = 0;
};

// With Croux and Rousseeuw's corrections for few values (Computational Statistics 1, 1992).
double qn(const std::vector<double>& values) {
  constexpr double kSmall[] = {0, 0, 0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872};
  const std::size_t count = values.size(), half = count / 2 + 1;
  std::vector<double> distances;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < i; ++j) distances.push_back(std::abs(values[i] - values[j]));
  }
  const auto at = distances.begin() + static_cast<std::ptrdiff_t>(half * (half - 1) / 2 - 1);
  std::ranges::nth_element(distances, at);
  const auto n = static_cast<double>(count);
  const double correction = count < std::size(kSmall) ? kSmall[count]
                            : count % 2 == 1          ? n / (n + 1.4)
                                                      : n / (n + 3.8);
  return 2.2219 * correction * *at;
}

ScreenSpread screen_spread(const std::vector<double>& values, double center) {
  const auto others = static_cast<double>(values.size() - 1);
  if (values.size() <= kMostForQn) return {qn(values), kOfQn * others};
  return {1.4826 * median(mapped(values, [&](double value) { return std::abs(value - center); })),
          kOfMedianDeviation * others};
}

// One part of a population: of each round how much slower than its median, as a logarithm.
struct ScreenPart {
  std::size_t index = 0;
  std::vector<double> by_round;
  double best = 0;  // the least of them
};

struct AlikeParts {
  std::string of, measured;
  std::vector<ScreenPart> parts;
  double rate = 0;  // the median over parts and rounds
};

// With the indices of the parts that they are of.
using Rates = std::vector<std::pair<std::size_t, const std::vector<double>*>>;
AlikeParts make_alike(std::string of, const std::string& measured, const Rates& rates) {
  AlikeParts population{std::move(of), measured, {}, 0};
  std::vector<double> middles;
  std::size_t rounds = rates.empty() ? 0 : rates.front().second->size();
  for (const auto& [index, each] : rates) rounds = std::min(rounds, each->size());
  for (const auto& [index, each] : rates) population.parts.push_back({index, {}, 0});
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<double> logs;
    for (const auto& [index, each] : rates) logs.push_back(std::log((*each)[round]));
    const double middle = median(logs);
    middles.push_back(middle);
    for (std::size_t i = 0; i < logs.size(); ++i) {
      population.parts[i].by_round.push_back(middle - logs[i]);
    }
  }
  for (ScreenPart& part : population.parts) {
    if (rounds > 0) part.best = *std::ranges::min_element(part.by_round);
  }
  if (rounds == 0) {
    population.parts.clear();
  } else {
    population.rate = std::exp(median(std::move(middles)));
  }
  return population;
}

struct PartTest {
  const AlikeParts* population = nullptr;
  std::size_t part = 0;  // in the population
  double p = 1;
};

double p_of_slower(double excess, const ScreenSpread& spread) {
  if (!(spread.value > 0)) return 1;  // all are equal, or nothing is known
  Difference difference;
  difference.mean = excess;
  difference.standard_error = spread.value;
  difference.degrees_of_freedom = spread.degrees_of_freedom;
  const double p = difference.p_value();
  return excess > 0 ? p / 2 : 1 - p / 2;
}

struct ChosenParts {
  std::vector<PartTest> slow;
  std::vector<Comparable> compared;
};

ChosenParts choose_slow(const std::vector<AlikeParts>& populations, double level) {
  ChosenParts judged;
  std::vector<PartTest> tests;
  std::vector<std::pair<std::size_t, ScreenSpread>> spreads;
  for (const AlikeParts& population : populations) {
    judged.compared.push_back({population.of, population.measured, population.parts.size(), 0});
    if (population.parts.size() < kFewestAlike) continue;
    std::vector<double> values = mapped(population.parts, &ScreenPart::best);
    const double center = median(values);
    const ScreenSpread spread = screen_spread(values, center);
    spreads.emplace_back(judged.compared.size() - 1, spread);
    for (std::size_t i = 0; i < values.size(); ++i) {
      tests.push_back({&population, i, p_of_slower(values[i] - center, spread)});
    }
  }
  const std::vector<bool> found = find_discoveries(mapped(tests, &PartTest::p), level);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (found[i]) judged.slow.push_back(tests[i]);
  }
  for (const auto& [index, spread] : spreads) {
    // A single one has to pass the strictest of the levels.
    const double strictest = level / static_cast<double>(tests.size());
    const double limit = t_quantile(spread.degrees_of_freedom, 1 - 2 * strictest);
    const double power = t_quantile(spread.degrees_of_freedom, 2 * kDetectablePower - 1);
    judged.compared[index].least = std::exp(spread.value * (limit + power));
  }
  return judged;
}

SlowPart make_slow(const PartTest& test, PartKind kind, std::string name,
                   std::vector<std::string> hosts) {
  std::vector<double> slower = test.population->parts[test.part].by_round;
  SlowPart slow;
  slow.kind = kind;
  slow.name = std::move(name);
  slow.hosts = std::move(hosts);
  slow.measured = test.population->measured;
  slow.p = test.p;
  for (std::size_t round = 0; round < slower.size(); ++round) {
    std::vector<double> all;  // of nodes not 0: where they are few, a slow one changes its partners
    for (const ScreenPart& each : test.population->parts) {
      if (round < each.by_round.size()) all.push_back(each.by_round[round]);
    }
    slower[round] -= median(std::move(all));
  }
  slow.times = as_factor(paired_difference(slower));
  if (slower.size() < kFewestRuns) slow.times.interval.reset();
  return slow;
}

// By what was measured, the parts of each kind.
template <typename Part, typename KindOf>
std::map<std::string, std::vector<AlikeParts>> group_alike(const std::vector<Part>& parts,
                                                           const KindOf& kind) {
  std::map<std::pair<std::string, std::string>, Rates> alike;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const ScreenRates& each : parts[i].measured) {
      alike[{each.measured, kind(parts[i])}].emplace_back(i, &each.rates);
    }
  }
  std::map<std::string, std::vector<AlikeParts>> groups;
  for (const auto& [key, rates] : alike) {
    groups[key.first].push_back(make_alike(key.second, key.first, rates));
  }
  return groups;
}

class ScreenJudge {
 public:
  ScreenJudge(const MachineScreen& screen, double false_discoveries)
      : screen_(screen), level_(false_discoveries / kFamilies) {}

  ScreenVerdict verdict() {
    judge_devices();
    judge_links();
    std::ranges::stable_sort(verdict_.slow, [](const SlowPart& a, const SlowPart& b) {
      return std::tuple(a.kind, -a.times.value) < std::tuple(b.kind, -b.times.value);
    });
    return std::move(verdict_);
  }

  ScreenScores scores() const {
    ScreenScores scores;
    const auto each_part = [](const AlikeParts& population, const auto& add) {
      if (population.parts.size() < kFewestAlike) return;
      const double center = median(mapped(population.parts, &ScreenPart::best));
      for (const ScreenPart& part : population.parts) {
        add(part.index, std::exp(part.best - center));
      }
    };
    const auto add = [&](const AlikeParts& population, const auto& name) {
      each_part(population, [&](std::size_t index, double times) {
        scores.parts.push_back({name(index), population.measured, times});
      });
    };
    for (const auto& [measured, populations] : alike_devices()) {
      for (const AlikeParts& each : populations) {
        scores.kinds.push_back({each.of, measured, each.rate});
        add(each, [this](std::size_t device) { return device_text(screen_.devices[device]); });
      }
    }
    std::vector<AlikeParts> of_nodes = alike_nodes();
    for (const AlikeParts& each : of_nodes) {
      scores.kinds.push_back({each.of, each.measured, each.rate});
    }
    for (const auto& [measured, populations] : alike_links()) {
      for (const AlikeParts& each : populations) {
        scores.kinds.push_back({each.of, measured, each.rate});
        each_part(each, [&](std::size_t index, double times) {
          const ScreenLink& link = screen_.links[index];
          scores.links.push_back({link.a, link.b, each.measured, times});
        });
      }
      add_nodes(measured, populations, of_nodes);
    }
    for (const AlikeParts& each : of_nodes) {
      add(each, [this](std::size_t node) { return screen_.nodes[node].host; });
    }
    return scores;
  }

 private:
  using ByMeasure = std::map<std::string, std::vector<AlikeParts>>;

  ByMeasure alike_devices() const {
    return group_alike(screen_.devices,
                       [](const ScreenDevice& device) { return "devices of " + device.kind; });
  }
  ByMeasure alike_links() const {
    return group_alike(screen_.links, [this](const ScreenLink& link) { return link_kind(link); });
  }
  // By what was measured within them.
  std::vector<AlikeParts> alike_nodes() const {
    const auto kind = [](const ScreenNode& node) { return "nodes of " + node.kind; };
    return flattened(group_alike(screen_.nodes, kind), &ByMeasure::value_type::second);
  }
  std::string device_text(const ScreenDevice& device) const {
    return fmt::format("{} of {}", device.name, host(device.node));
  }

  const std::string& host(int node) const {
    return screen_.nodes[static_cast<std::size_t>(node)].host;
  }

  void judge_devices() {
    const auto populations = flattened(alike_devices(), &ByMeasure::value_type::second);
    const ChosenParts judged = choose_slow(populations, level_);
    add(judged.compared);
    for (const PartTest& test : judged.slow) {
      const ScreenDevice& device = screen_.devices[test.population->parts[test.part].index];
      verdict_.slow.push_back(
          make_slow(test, PartKind::device, device_text(device), {host(device.node)}));
      verdict_.slow.back().remarks = device.remarks;
    }
  }

  // Links of one kind: between the same kinds of nodes, within a group or not.
  std::string link_kind(const ScreenLink& link) const {
    const ScreenNode& a = screen_.nodes[static_cast<std::size_t>(link.a)];
    const ScreenNode& b = screen_.nodes[static_cast<std::size_t>(link.b)];
    std::string kind = a.kind == b.kind
                           ? "links of " + a.kind
                           : fmt::format("links of {} with {}", std::min(a.kind, b.kind),
                                         std::max(a.kind, b.kind));
    if (!a.group.empty() && !b.group.empty()) {
      kind += a.group == b.group ? ", within a switch" : ", between switches";
    }
    return kind;
  }

  void judge_links() {
    ByMeasure by_measure = alike_links();
    std::vector<AlikeParts> of_nodes = alike_nodes();
    for (const auto& [measured, populations] : by_measure) {
      add_nodes(measured, populations, of_nodes);
    }
    const ChosenParts nodes = choose_slow(of_nodes, level_);
    add(nodes.compared);
    std::map<std::string, std::map<std::size_t, double>> excess;  // of slow nodes, by measure
    std::vector<SlowPart> slow;
    for (const PartTest& test : nodes.slow) {
      const ScreenPart& part = test.population->parts[test.part];
      excess[test.population->measured][part.index] =
          part.best - median(mapped(test.population->parts, &ScreenPart::best));
      const std::string& node = screen_.nodes[part.index].host;
      slow.push_back(make_slow(test, PartKind::node, node, {node}));
    }
    join_groups(slow);
    std::vector<AlikeParts> rest;
    for (auto& [measured, populations] : by_measure) {
      for (AlikeParts& population : populations) {
        for (ScreenPart& part : population.parts) take_from(excess[measured], part);
        rest.push_back(std::move(population));
      }
    }
    const ChosenParts links = choose_slow(rest, level_);
    add(links.compared);
    for (const PartTest& test : links.slow) {
      const ScreenLink& link = screen_.links[test.population->parts[test.part].index];
      const std::string name = fmt::format("{} - {}", host(link.a), host(link.b));
      // Which of the two it is, one link cannot say.
      verdict_.slow.push_back(make_slow(test, PartKind::link, name, {}));
    }
  }

  // A node's value is the median over its links, so that a slow partner does not count.
  void add_nodes(const std::string& measured, const std::vector<AlikeParts>& links,
                 std::vector<AlikeParts>& of_nodes) const {
    struct Ends {
      std::vector<double> best;
      std::vector<std::vector<double>> by_round;
    };
    std::map<std::size_t, Ends> ends;
    for (const AlikeParts& population : links) {
      if (population.parts.size() < kFewestAlike) continue;
      for (const ScreenPart& part : population.parts) {
        const ScreenLink& link = screen_.links[part.index];
        for (const int node : {link.a, link.b}) {
          Ends& of = ends[static_cast<std::size_t>(node)];
          of.best.push_back(part.best);
          of.by_round.push_back(part.by_round);
        }
      }
    }
    std::map<std::string, AlikeParts> by_kind;
    for (auto& [node, of] : ends) {
      const std::string& kind = screen_.nodes[node].kind;
      AlikeParts& population =
          by_kind.try_emplace(kind, AlikeParts{"nodes of " + kind, measured, {}, 0}).first->second;
      ScreenPart part{node, {}, lower_median(of.best)};
      std::size_t rounds = of.by_round.front().size();  // links of two kinds may have other numbers
      for (const auto& each : of.by_round) rounds = std::min(rounds, each.size());
      for (std::size_t round = 0; round < rounds; ++round) {
        part.by_round.push_back(
            lower_median(mapped(of.by_round, [&](const auto& each) { return each[round]; })));
      }
      population.parts.push_back(std::move(part));
    }
    for (auto& [kind, population] : by_kind) of_nodes.push_back(std::move(population));
  }

  void take_from(const std::map<std::size_t, double>& excess, ScreenPart& part) const {
    const ScreenLink& link = screen_.links[part.index];
    double most = 0;
    for (const int node : {link.a, link.b}) {
      const auto found = excess.find(static_cast<std::size_t>(node));
      if (found != excess.end()) most = std::max(most, found->second);
    }
    for (double& value : part.by_round) value -= most;
    part.best -= most;
  }

  // Most nodes of a switch being slow is the switch; one of them is a node.
  void join_groups(std::vector<SlowPart>& nodes) {
    constexpr std::size_t kFewest = 3;
    constexpr double kMost = 0.6;
    std::map<std::string, std::string> group_of;
    std::map<std::string, std::size_t> sizes;
    for (const ScreenNode& node : screen_.nodes) {
      group_of[node.host] = node.group;
      ++sizes[node.group];
    }
    std::map<std::pair<std::string, std::string>, std::vector<SlowPart>> grouped;
    for (SlowPart& node : nodes) grouped[{group_of[node.name], node.measured}].push_back(node);
    for (auto& [key, parts] : grouped) {
      const auto size = static_cast<double>(sizes[key.first]);
      const bool is_group = !key.first.empty() && !key.second.ends_with(kWithinNode) &&
                            parts.size() >= kFewest &&
                            static_cast<double>(parts.size()) >= kMost * size;
      if (!is_group) {
        verdict_.slow.insert(verdict_.slow.end(), parts.begin(), parts.end());
        continue;
      }
      std::vector<double> logs;
      SlowPart group;
      group.kind = PartKind::group;
      group.name = fmt::format("switch {} ({} of its {} nodes)", key.first, parts.size(), size);
      group.measured = key.second;
      for (const SlowPart& part : parts) {
        logs.push_back(std::log(part.times.value));
        group.p = std::min(group.p, part.p);
        group.hosts.push_back(part.name);
      }
      group.times = as_factor(paired_difference(logs));
      verdict_.slow.push_back(std::move(group));
    }
  }

  void add(const std::vector<Comparable>& compared) {
    verdict_.compared.insert(verdict_.compared.end(), compared.begin(), compared.end());
  }

  const MachineScreen& screen_;
  double level_;
  ScreenVerdict verdict_;
};

}  // namespace

std::vector<std::string> ScreenVerdict::hosts() const {
  std::set<std::string> hosts;
  for (const SlowPart& part : slow) hosts.insert(part.hosts.begin(), part.hosts.end());
  return {hosts.begin(), hosts.end()};
}

ScreenScores score_screen(const MachineScreen& screen) {
  return ScreenJudge(screen, kFalseDiscoveries).scores();
}

ScreenVerdict judge_screen(const MachineScreen& screen, double false_discoveries) {
  return ScreenJudge(screen, false_discoveries).verdict();
}

}  // namespace paceline

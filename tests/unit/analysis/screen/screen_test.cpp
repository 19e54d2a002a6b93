// Verdicts on made-up machines whose slow parts are known.
#include "analysis/screen/screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "analysis/history/history.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "tests/support/expect_error.h"
#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

// Of each probe's logarithm.
enum class ProbeNoise {
  normal,    // of 1 %
  alike,     // the same, and 0.7 of it stays from round to round
  disturbed  // the same, and 5 % of probes take 1.3 to 2 times as long
};

struct MadeMachine {
  int nodes = 64, devices = 4, rounds = 4, nodes_of_switch = 0;
  bool two_kinds = false;
  ProbeNoise noise = ProbeNoise::normal;
  std::uint32_t seed = 1;
  // Slower by this, as a logarithm, by index; of a switch all its links that leave it.
  double fault = std::log(1.05);
  std::vector<int> slow_nodes = {}, slow_devices = {}, slow_links = {}, slow_switches = {};
};

bool holds(const std::vector<int>& all, int one) {
  return std::ranges::count(all, one) > 0;
}

class MachineMaker {
 public:
  explicit MachineMaker(const MadeMachine& of) : of_(of), random_(of.seed) {}

  MachineScreen make() {
    MachineScreen screen;
    screen.schema = 1;
    screen.backend = "ring";
    for (int i = 0; i < of_.nodes; ++i) {
      const int group = of_.nodes_of_switch > 0 ? i / of_.nodes_of_switch : -1;
      screen.nodes.push_back({"n" + std::to_string(i), of_.two_kinds && i % 2 ? "new" : "old",
                              group < 0 ? "" : "s" + std::to_string(group)});
    }
    for (int i = 0; i < of_.nodes * of_.devices; ++i) {
      const int node = i / of_.devices;
      const double level = of_.two_kinds && node % 2 ? 2 : 1;
      ScreenDevice device{node,
                          "GPU " + std::to_string(i % of_.devices),
                          screen.nodes[static_cast<std::size_t>(node)].kind,
                          {},
                          {}};
      for (const char* measured : {"multiply-adds in fp32", "memory copies"}) {
        device.measured.push_back(
            {measured, rates(level, holds(of_.slow_devices, i) ? of_.fault : 0)});
      }
      screen.devices.push_back(device);
    }
    int index = 0;
    for (const Matching& matching : draw_matchings(of_.nodes, of_.seed)) {
      for (const auto& [a, b] : matching) {
        double slower = holds(of_.slow_nodes, a) || holds(of_.slow_nodes, b) ? of_.fault : 0;
        if (holds(of_.slow_links, index++)) slower += of_.fault;
        if (of_.nodes_of_switch > 0 && a / of_.nodes_of_switch != b / of_.nodes_of_switch) {
          for (const int node : {a, b}) {
            if (holds(of_.slow_switches, node / of_.nodes_of_switch)) slower = of_.fault;
          }
        }
        screen.links.push_back({a, b, {{"sums of 4 MB", rates(1, slower)}}});
      }
    }
    return screen;
  }

 private:
  std::vector<double> rates(double level, double slower) {
    std::normal_distribution<double> normal(0, 0.01);
    std::uniform_real_distribution<double> uniform(0, 1), factor(1.3, 2);
    std::vector<double> rates;
    double before = 0;
    for (int round = 0; round < of_.rounds; ++round) {
      double log = normal(random_);
      if (of_.noise == ProbeNoise::alike && round > 0) log = 0.7 * before + std::sqrt(0.51) * log;
      before = log;
      if (of_.noise == ProbeNoise::disturbed && uniform(random_) < 0.05) {
        log += std::log(factor(random_));
      }
      rates.push_back(level * 1e12 * std::exp(-log - slower));
    }
    return rates;
  }

  const MadeMachine& of_;
  std::mt19937 random_;
};

std::vector<std::string> named_parts(const MadeMachine& machine) {
  std::vector<std::string> names;
  for (const SlowPart& part : judge_screen(MachineMaker(machine).make()).slow)
    names.push_back(part.name);
  return names;
}

TEST(Screen, NamesEachKindOfPart) {
  MadeMachine machine;
  machine.slow_devices = {13};
  EXPECT_EQ(named_parts(machine), (std::vector<std::string>{"GPU 1 of n3", "GPU 1 of n3"}));
  machine = {.slow_nodes = {7}};
  EXPECT_EQ(named_parts(machine), std::vector<std::string>{"n7"});
  machine = {.fault = std::log(1.1), .slow_links = {20}};
  const MachineScreen screen = MachineMaker(machine).make();
  const ScreenVerdict verdict = judge_screen(screen);
  ASSERT_EQ(verdict.slow.size(), 1U);
  const ScreenLink& link = screen.links[20];
  EXPECT_EQ(verdict.slow[0].name, "n" + std::to_string(link.a) + " - n" + std::to_string(link.b));
  EXPECT_NEAR(verdict.slow[0].times.value, 1.1, 0.02);
  ASSERT_TRUE(verdict.slow[0].times.interval);
  EXPECT_TRUE(verdict.hosts().empty());  // which of the two it is, nobody knows
}

TEST(Screen, ManySlowNodesOfASwitchAreTheSwitch) {
  const MadeMachine machine = {
      .nodes = 64, .devices = 1, .nodes_of_switch = 8, .slow_switches = {2}};
  const ScreenVerdict verdict = judge_screen(MachineMaker(machine).make());
  ASSERT_FALSE(verdict.slow.empty());
  EXPECT_EQ(verdict.slow[0].kind, PartKind::group);
  EXPECT_TRUE(verdict.slow[0].name.starts_with("switch s2 (")) << verdict.slow[0].name;
  for (const std::string& host : verdict.hosts()) {
    const int node = std::stoi(host.substr(1));
    EXPECT_EQ(node / 8, 2) << host;
  }
}

// The slower generation is not slow.
TEST(Screen, PartsAreComparedWithThoseOfTheirKind) {
  MadeMachine machine = {.two_kinds = true};
  EXPECT_TRUE(named_parts(machine).empty());
  machine.slow_devices = {13};
  EXPECT_EQ(named_parts(machine), (std::vector<std::string>{"GPU 1 of n3", "GPU 1 of n3"}));
}

TEST(Screen, FewPartsAreNotCompared) {
  MadeMachine machine = {.nodes = 2, .devices = 1, .slow_devices = {1}};
  const ScreenVerdict verdict = judge_screen(MachineMaker(machine).make());
  EXPECT_TRUE(verdict.slow.empty());
  for (const Comparable& each : verdict.compared) EXPECT_EQ(each.least, 0) << each.of;
  EXPECT_FALSE(judge_screen({}).compared.size());
}

TEST(Screen, ItsFileIsReadBackAndChecked) {
  const Scratch scratch;
  const MachineScreen screen = MachineMaker({.nodes = 4, .devices = 1}).make();
  std::ofstream(scratch / "screen.json") << to_text(screen);
  EXPECT_EQ(parse_json(to_text(read_screen(scratch.path()))), parse_json(to_text(screen)));
  expect_error(ErrorKind::input, {"no screen", "paceline screen"},
               [&] { read_screen(scratch / "nowhere"); });
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    std::ofstream(scratch / "screen.json") << text;
    expect_error(ErrorKind::input, parts, [&] { read_screen(scratch.path()); });
  };
  refused("{", {"screen.json:1"});
  refused(R"({"schema": 2})", {"schema 2"});
  refused(R"({"schema": 1, "devices": [{"node": 3}]})", {"node 3 is not among its 0"});
  refused(R"({"schema": 1, "nodes": [{"host": "a"}], "devices": [{"node": 0, "measured":
             [{"measured": "x", "rates": [1, -1]}]}]})",
          {"rates"});
}

// A file that somebody edited: links within a switch have fewer rounds than those between.
TEST(Screen, RoundsThatSomeLinksLackDoNotCount) {
  MachineScreen screen = MachineMaker({.nodes_of_switch = 8, .slow_nodes = {7}}).make();
  for (ScreenLink& link : screen.links) {
    if (link.a / 8 == link.b / 8) link.measured.front().rates.resize(2);
  }
  EXPECT_EQ(judge_screen(screen).slow.front().name, "n7");
}

TEST(Screen, WhatIsSlowWithinANodeIsTheNode) {
  MachineScreen screen = MachineMaker({.nodes = 16}).make();
  for (std::size_t i = 0; i < 16; ++i) {
    const double rate = (i == 5 ? 0.8 : 1) + 0.001 * static_cast<double>(i % 4);
    screen.nodes[i].measured = {{std::string(kLargestSums) + kWithinNode, {rate, rate, rate}}};
  }
  const ScreenVerdict verdict = judge_screen(screen);
  ASSERT_EQ(verdict.slow.size(), 1U);
  EXPECT_EQ(verdict.slow[0].name, "n5");
  EXPECT_EQ(verdict.slow[0].measured, "sums of 4 MB within the node");
  EXPECT_EQ(verdict.hosts(), std::vector<std::string>{"n5"});
  // Three of a switch are no switch, which does not lie between their devices.
  for (std::size_t i = 0; i < 16; ++i) {
    screen.nodes[i].group = i < 4 ? "s0" : "s1";
    if (i < 3) screen.nodes[i].measured[0].rates = {0.7, 0.7, 0.7};
  }
  for (const SlowPart& part : judge_screen(screen).slow) EXPECT_EQ(part.kind, PartKind::node);
}

// A node of few is half of the links that it is compared with.
TEST(Screen, OfFourNodesTheSlowOneIsAsSlowAsItIs) {
  const MadeMachine machine = {.nodes = 4, .devices = 1, .fault = std::log(4.0), .slow_nodes = {2}};
  const ScreenVerdict verdict = judge_screen(MachineMaker(machine).make());
  ASSERT_EQ(verdict.slow.size(), 1U);
  EXPECT_EQ(verdict.slow[0].name, "n2");
  EXPECT_NEAR(verdict.slow[0].times.value, 4, 0.2);
}

TEST(Screen, PairsAreAMapOfSwitches) {
  MadeMachine machine = {.nodes_of_switch = 8, .slow_nodes = {7}};
  machine.fault = std::log(1.5);
  MachineScreen screen = MachineMaker(machine).make();
  std::swap(screen.nodes[0].group, screen.nodes[63].group);
  const std::vector<Plot> plots = screen_plots(screen);
  ASSERT_EQ(plots.size(), 1U);
  EXPECT_EQ(plots[0].title, "Pairs of nodes: sums of 4 MB");
  const auto& map = std::get<HeatMap>(plots[0].body);
  ASSERT_EQ(map.rows.size(), 64U);
  EXPECT_EQ(map.rows[7], "n63");  // beside its switch's
  const auto row = std::ranges::find(map.rows, "n7") - map.rows.begin();
  std::size_t cells = 0;
  for (std::size_t k = 0; k < 64; ++k) {
    const auto& cell = map.cells[static_cast<std::size_t>(row)][k];
    EXPECT_EQ(cell.has_value(), map.cells[k][static_cast<std::size_t>(row)].has_value());
    if (!cell) continue;
    EXPECT_EQ(cell->heat, 1) << map.rows[k];
    ++cells;
  }
  EXPECT_EQ(cells, 6U);  // log2(64) partners
  EXPECT_TRUE(screen_plots(MachineMaker({.nodes = 200}).make()).empty());
  EXPECT_TRUE(screen_plots(MachineMaker({.nodes = 1}).make()).empty());
}

// Of 12 screens of 16 nodes; the last 5 have a slow node, or a machine that is slow as a whole.
std::vector<MachineScreen> made_screens(const MadeMachine& later, double whole = 1) {
  std::vector<MachineScreen> screens;
  for (int day = 0; day < 12; ++day) {
    MadeMachine machine = day < 7 ? MadeMachine{} : later;
    machine.nodes = 16;
    machine.devices = 1;
    machine.seed = static_cast<std::uint32_t>(day + 1);
    screens.push_back(MachineMaker(machine).make());
    screens.back().started_at = "2026-11-" + std::to_string(10 + day) + "T02:00:00Z";
    if (day < 7) continue;
    for (ScreenDevice& device : screens.back().devices) {
      for (ScreenRates& each : device.measured) {
        for (double& rate : each.rates) rate /= whole;
      }
    }
  }
  return screens;
}

TEST(ScreenHistory, SaysSinceWhenAPartIsSlow) {
  const auto text = [](const std::vector<MachineScreen>& screens) {
    return to_text(history_document(find_history(screen_history(screens, {}))));
  };
  const std::string slow = text(made_screens({.fault = std::log(1.2), .slow_nodes = {5}}));
  expect_parts(slow, {"1 level shift", "2026-11-17 (the session before: 2026-11-16): slowness +",
                      "(worse)", "n5: sums of 4 MB: "});
  expect_no_parts(text(made_screens({})), {"(worse)", "(better)"});
  const std::string whole = text(made_screens({}, 1.3));
  expect_parts(whole, {"throughput -2", "median of devices of old: multiply-adds in fp32"});
  expect_no_parts(whole, {"slowness +"});
}

TEST(ScreenHistory, RefusesScreensThatCannotBeCompared) {
  std::vector<MachineScreen> two = made_screens({});
  two.resize(2);
  EXPECT_EQ(screen_history(two, {}).size(), 1U);
  expect_error(ErrorKind::input, {"no part is in two dated screens"},
               [&] { screen_history(two, parse_day("2026-11-11")); });
  two[1].backend = "mpi";
  expect_error(ErrorKind::input, {"with the same backend"}, [&] { screen_history(two, {}); });
}

// Each once.
TEST(ScreenHistory, FindsFilesFoldersAndFoldersOfThem) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "screens" / "a");
  std::filesystem::create_directories(scratch / "study");
  std::ofstream(scratch / "screens" / "a" / "screen.json") << "{}";
  const std::string all = scratch.path().string() + "/";
  EXPECT_EQ(find_screens({all + "screens"}).size(), 1U);
  EXPECT_EQ(find_screens({all + "screens/a", all + "screens/a/screen.json"}).size(), 1U);
  EXPECT_TRUE(find_screens({all + "study"}).empty());
  expect_error(ErrorKind::input, {"study", "no screen"}, [&] {
    find_screens({all + "screens", all + "study"});
  });
}

TEST(Screen, WhatItSaysHasTheCure) {
  const MachineScreen screen = MachineMaker({.slow_nodes = {7}}).make();
  const std::string text = to_text(screen_document(screen, judge_screen(screen)));
  expect_parts(text, {"1 slow part: n7 is ", "% slower in sums of 4 MB than those like it",
                      "--exclude=n7", "in 9 of 10 screens, if it is slower by"});
  // Slow in two measures, and one part, of which is said once what the driver says.
  MachineScreen gpu = MachineMaker({.slow_devices = {13}}).make();
  gpu.devices[13].remarks = {"1,110 MHz"};
  EXPECT_EQ(judge_screen(gpu).slow.size(), 2U);
  const std::string of_gpu = to_text(screen_document(gpu, judge_screen(gpu)));
  expect_parts(of_gpu, {"1 slow part: GPU 1 of n3 is ", "- GPU 1 of n3: 1,110 MHz"});
  EXPECT_EQ(of_gpu.find("1,110"), of_gpu.rfind("1,110"));
  const MachineScreen good = MachineMaker(MadeMachine{}).make();
  expect_parts(to_text(screen_document(good, judge_screen(good))),
               {"No part is slower than those like it"});
}

// Rates over many machines: what is named falsely, and what is found of one slow part of each kind.
struct ScreenRate {
  int machines = 0, with_false = 0, planted = 0, found = 0, found_links = 0, found_switches = 0;
  double false_share = 0;  // mean over machines with faults
};

// Of the parts that are named, those that are not `planted`. Of a switch how many of its nodes are
// slow stands behind its name.
double share_of_false(const MadeMachine& machine, const std::vector<std::string>& planted,
                      std::set<std::string>& found) {
  const ScreenVerdict verdict = judge_screen(MachineMaker(machine).make());
  double wrong = 0;
  for (const SlowPart& part : verdict.slow) {
    const std::string name = part.name.substr(0, part.name.find(" ("));
    if (std::ranges::count(planted, name) > 0) {
      found.insert(name);
    } else {
      ++wrong;
    }
  }
  return verdict.slow.empty() ? 0 : wrong / static_cast<double>(verdict.slow.size());
}

ScreenRate measure_rates(const MadeMachine& like, int machines) {
  ScreenRate rate;
  for (int i = 0; i < machines; ++i) {
    MadeMachine machine = like;
    machine.seed = static_cast<std::uint32_t>(1000 + i);
    rate.with_false += named_parts(machine).empty() ? 0 : 1;
    machine.slow_nodes = {3};
    machine.slow_devices = {machine.nodes / 2 * machine.devices};
    std::set<std::string> found;
    rate.false_share +=
        share_of_false(machine, {"n3", "GPU 0 of n" + std::to_string(machine.nodes / 2)}, found);
    rate.planted += 2;
    rate.found += static_cast<int>(found.size());
    machine.slow_nodes.clear();
    machine.slow_devices.clear();
    machine.slow_links = {5};
    const auto [a, b] = draw_matchings(machine.nodes, machine.seed).front()[5];
    found.clear();
    share_of_false(machine, {"n" + std::to_string(a) + " - n" + std::to_string(b)}, found);
    rate.found_links += static_cast<int>(found.size());
    machine.slow_links.clear();
    machine.nodes_of_switch = machine.nodes / 8;
    machine.slow_switches = {2};
    found.clear();
    share_of_false(machine, {"switch s2"}, found);
    rate.found_switches += static_cast<int>(found.size());
    ++rate.machines;
  }
  rate.false_share /= rate.machines;
  return rate;
}

void expect_rates(int nodes, int devices, ProbeNoise noise, int machines, double least_found) {
  // A half of the nodes, and of the links between halves, is of another generation.
  MadeMachine like = {.nodes = nodes, .devices = devices, .two_kinds = nodes >= 64, .noise = noise};
  if (nodes > static_cast<int>(kManyNodes)) like.rounds = 6;
  const ScreenRate rate = measure_rates(like, machines);
  const double alone = static_cast<double>(rate.with_false) / rate.machines;
  const double found = static_cast<double>(rate.found) / rate.planted;
  const auto share = [&](int of) { return static_cast<double>(of) / rate.machines; };
  std::printf(
      "%5d nodes, noise %d: named without a fault in %.3f, false of those named %.3f, found of "
      "faults of 5 %%: nodes and devices %.3f, links %.3f, switches %.3f\n",
      nodes, static_cast<int>(noise), alone, rate.false_share, found, share(rate.found_links),
      share(rate.found_switches));
  // Three standard deviations of so many machines.
  const double limit = 0.05 + 3 * std::sqrt(0.05 * 0.95 / machines);
  EXPECT_LE(alone, limit);
  EXPECT_LE(rate.false_share, limit);
  EXPECT_GE(found, least_found);
}

TEST(Screen, RatesHoldForEachNoise) {
  expect_rates(64, 4, ProbeNoise::normal, 60, 0.9);
  expect_rates(64, 4, ProbeNoise::alike, 60, 0.8);
  expect_rates(64, 4, ProbeNoise::disturbed, 60, 0.9);
}

// Minutes: tests/full.
TEST(ScreenRates, DISABLED_FromSixteenToManyNodes) {
  for (const ProbeNoise noise : {ProbeNoise::normal, ProbeNoise::alike, ProbeNoise::disturbed}) {
    for (const int nodes : {16, 64, 256, 1024, 4096}) {
      expect_rates(nodes, 1, noise, nodes > 1000 ? 100 : 400,
                   noise == ProbeNoise::normal ? 0.9 : 0);
    }
  }
}

}  // namespace
}  // namespace paceline

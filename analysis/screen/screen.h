// Which node, device or link of a machine is slow, with a stated rate of false discoveries.
//
// Each part is compared with those like it (same hardware, same kind of link). Of a part's rounds
// the best counts, so that what disturbs some of them does no harm: log(median of all / rate), of a
// round, the least over rounds. Its spread over the population (Rousseeuw and Croux's Qn, J. Am.
// Stat. Assoc. 88, 1993; of more than kMostForQn parts the median deviation) makes it a Student's
// t, as whose degrees of freedom the estimator's efficiency counts. Benjamini and Hochberg's
// procedure chooses, at a third of the rate each, among the devices, among the nodes by their
// links, and among the links that slow nodes do not explain. What that errs is measured
// (tests/unit/analysis/screen, docs/screen.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/history/series.h"
#include "analysis/statistics/statistics.h"
#include "engine/facts/fact.h"
#include "engine/facts/provenance.h"

namespace paceline {

// What is measured of links.
inline constexpr char kLargestSums[] = "sums of 4 MB", kSmallestSums[] = "sums of 8 bytes";
inline constexpr char kWithinNode[] = " within the node";
inline constexpr std::size_t kFewestAlike = 4, kMostForQn = 1000;
inline constexpr double kFalseDiscoveries = 0.05;

// What was measured of a part, a rate for each round; more is better.
struct ScreenRates {
  PACELINE_FACT(std::string, measured, "\"products in fp32\"", kRequired);
  PACELINE_FACT(std::vector<double>, rates, "one per round, in units a second", kPositive);
  PACELINE_END_FACTS
};

struct ScreenNode {
  PACELINE_FACT(std::string, host, "", kRequired);
  PACELINE_FACT(fact::Text, kind, "its hardware: parts of one kind are compared");
  PACELINE_FACT(fact::Text, group, "its switch or rack, as the scheduler says");
  PACELINE_FACT(std::vector<ScreenRates>, measured, "among its devices");
  PACELINE_END_FACTS
};

struct ScreenDevice {
  PACELINE_FACT(int, node, "its index", kRequired);
  PACELINE_FACT(fact::Text, name, "\"GPU 0000:1b:00.0\", \"CPUs 0-31\"");
  PACELINE_FACT(fact::Text, kind, "");
  PACELINE_FACT(std::vector<ScreenRates>, measured, "");
  PACELINE_FACT(fact::Texts, remarks, "\"clocks limited by hardware thermal\"");
  PACELINE_END_FACTS
};

struct ScreenLink {
  PACELINE_FACT(int, a, "index of a node", kRequired);
  PACELINE_FACT(int, b, "of the other", kRequired);
  PACELINE_FACT(std::vector<ScreenRates>, measured, "");
  PACELINE_END_FACTS
};

struct MachineScreen {
  PACELINE_FACT_FROM(1, int, schema, "", kRequiredCount);
  PACELINE_FACT(fact::Text, started_at, "UTC");
  PACELINE_FACT(fact::Text, version, "of Paceline");
  PACELINE_FACT(fact::Text, backend, "");
  PACELINE_FACT(fact::Text, transport, "");
  PACELINE_FACT(std::vector<ScreenNode>, nodes, "");
  PACELINE_FACT(std::vector<ScreenDevice>, devices, "");
  PACELINE_FACT(std::vector<ScreenLink>, links, "");
  PACELINE_FACT(fact::Texts, warnings, "");
  PACELINE_END_FACTS
};

// The file of a screen in its folder.
inline constexpr char kScreenFile[] = "screen.json";
std::string to_text(const MachineScreen& screen);
// `path`: the file, or the folder that holds it. Throws input: no such screen, or not one.
MachineScreen read_screen(const std::filesystem::path& path);

// Pairs of `count` nodes: log2(count) matchings without a pair twice, so each node meets as many
// others. Of an odd number, one has none in a matching.
using Matching = std::vector<std::pair<int, int>>;
std::vector<Matching> draw_matchings(int count, std::uint32_t seed);

// With more nodes, four rounds leave too many that all were disturbed.
inline constexpr std::size_t kManyNodes = 512;

enum class PartKind { group, node, link, device };

struct SlowPart {
  PartKind kind = PartKind::device;
  std::string name;      // "GPU 0000:1b:00.0 of cn12", "cn03 - cn17", "cn12", "switch s2"
  std::string measured;  // "products in fp32"
  Estimate times;        // how many times as slow as those like it
  double p = 1;          // one-sided, not adjusted
  std::vector<std::string> hosts;
  std::vector<std::string> remarks;
};

// What was compared, and the least slow-down of one part that would have been found.
struct Comparable {
  std::string of, measured;  // "32 of NVIDIA H100", "products in fp32"
  std::size_t parts = 0;
  double least = 0;  // 1.04: 4 %, in 90 %; 0: too few are alike to compare
};

struct ScreenVerdict {
  std::vector<SlowPart> slow;  // groups, nodes, links, devices; the slowest first
  std::vector<Comparable> compared;

  std::vector<std::string> hosts() const;  // of the slow parts, each once
};

ScreenVerdict judge_screen(const MachineScreen& screen,
                           double false_discoveries = kFalseDiscoveries);

// A device, or a node by its links, against those like it, of which there are kFewestAlike or more.
struct PartScore {
  std::string name, measured;
  double times = 1;  // as slow as their median, by the best of its rounds
};
// What parts of one kind have in common: a screen's level, with which others may be compared.
struct KindLevel {
  std::string of, measured;
  double rate = 0;  // the median; of multiply-adds in operations, two each
};
struct LinkScore {
  int a = 0, b = 0;  // indices of nodes
  std::string measured;
  double times = 1;  // as of a part
};
struct ScreenScores {
  std::vector<PartScore> parts;
  std::vector<LinkScore> links;
  std::vector<KindLevel> kinds;
};
ScreenScores score_screen(const MachineScreen& screen);

// A heat map of pairs of nodes for each measure; none without links, or of more than kMostInMap
// nodes.
inline constexpr std::size_t kMostInMap = 128;
std::vector<Plot> screen_plots(const MachineScreen& screen);

// Screens that `paths` name: files, their folders, and folders of such folders. Empty: none is one.
// Throws input: some are, and others not.
std::vector<std::filesystem::path> find_screens(const std::vector<std::string>& paths);

// Screens over time: the slowness of each part, and the median rate of each kind; by backend, as
// links of two are not alike. Screens before `since` (a day) are left out. Throws input: no part is
// in two.
std::vector<HistoryStudy> screen_history(const std::vector<MachineScreen>& screens,
                                         std::optional<double> since);

// What the record of a run after it says.
ScreenedFacts screened_facts(const MachineScreen& screen, const ScreenVerdict& verdict);

// JSON: {"started_at", "backend", "transport", "exclude", "slow": [..], "compared": [..]}
Document screen_document(const MachineScreen& screen, const ScreenVerdict& verdict);

}  // namespace paceline

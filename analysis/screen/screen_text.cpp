// A screen's file, and what it says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "analysis/document/columns.h"
#include "analysis/screen/screen.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/facts/json.h"

namespace paceline {

namespace {

constexpr int kScreenSchema = 1;

constexpr EnumName<PartKind> kPartKinds[] = {{PartKind::group, "switch"},
                                             {PartKind::node, "node"},
                                             {PartKind::link, "link"},
                                             {PartKind::device, "device"}};

void check_screen_nodes(const MachineScreen& screen, const std::string& file) {
  const auto check = [&](int node) {
    if (node >= 0 && static_cast<std::size_t>(node) < screen.nodes.size()) return;
    throw input_error(fmt::format("node {} is not among its {}", node, screen.nodes.size()), file,
                      "make the screen again");
  };
  for (const ScreenDevice& device : screen.devices) check(device.node);
  for (const ScreenLink& link : screen.links) check(link.a), check(link.b);
}

// "8.1 [6.0, 10.3]": by how many percent of the others' time.
Cell slower_cell(const SlowPart& part) {
  const auto percent = [](double times) { return 100 * (times - 1); };
  std::string text = fmt::format("{:.1f}", percent(part.times.value));
  if (const auto& interval = part.times.interval) {
    text += fmt::format(" [{:.1f}, {:.1f}]", percent(interval->low), percent(interval->high));
  }
  return {text, part.times.value, part.times.interval};
}

// "8.0 % slower in sums of 4 MB"
std::string slower_text(const SlowPart& part) {
  return fmt::format("{:.1f} % slower in {}", 100 * (part.times.value - 1), part.measured);
}

std::string screen_headline(const ScreenVerdict& verdict) {
  if (verdict.slow.empty()) return "No part is slower than those like it";
  const SlowPart& first = verdict.slow.front();
  // One may be slow in several measures.
  const auto parts = distinct(verdict.slow, &SlowPart::name);
  return fmt::format("{}: {} is {} than those like it{}",
                     counted(static_cast<double>(parts.size()), "slow part"), first.name,
                     slower_text(first), parts.size() > 1 ? "; the others are below" : "");
}

// A sentence for each population: from which slow-down on one of it is found.
std::vector<std::string> sensitivity_sentences(std::vector<Comparable> compared) {
  constexpr double kHalfSpeed = 2;  // times
  std::ranges::stable_sort(compared, {}, &Comparable::of);
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < compared.size();) {
    std::vector<std::string> found, lost;
    const Comparable& first = compared[i];
    for (; i < compared.size() && compared[i].of == first.of; ++i) {
      const double least = compared[i].least;
      if (least > 0 && least < kHalfSpeed) {
        found.push_back(fmt::format("{:.2g} % ({})", 100 * (least - 1), compared[i].measured));
      } else {
        lost.push_back(compared[i].measured);
      }
    }
    const std::string of = fmt::format("Of {} {}", first.parts, first.of);
    if (first.parts < kFewestAlike) {
      sentences.push_back(
          fmt::format("{} none is compared: {} that are alike are needed", of, kFewestAlike));
      continue;
    }
    if (!found.empty()) {
      sentences.push_back(
          fmt::format("{}, a single one is found, in 9 of 10 screens, if it is slower by {}", of,
                      join(found, ", ")));
    }
    if (!lost.empty()) {
      sentences.push_back(fmt::format(
          "The {} {} are too few or too unlike each other in {}: not even one of half the "
          "speed would be found",
          first.parts, first.of, join(lost, ", ")));
    }
  }
  return sentences;
}

}  // namespace

std::string to_text(const MachineScreen& screen) {
  return json_text(facts_to_json(screen), 1) + "\n";
}

MachineScreen read_screen(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path file =
      std::filesystem::is_directory(path, ignored) ? path / kScreenFile : path;
  if (!path_exists(file)) {
    throw input_error("there is no screen", file.string(), "make one: paceline screen --out");
  }
  const JsonDocument document(file.string(), read_text(file));
  MachineScreen screen;
  facts_from_json(document.value(), screen, {document.name(), ""});
  if (screen.schema != kScreenSchema) {
    throw input_error(fmt::format("a screen of schema {}, and this program reads {}", screen.schema,
                                  kScreenSchema),
                      file.string(), "read it with the program that made it");
  }
  check_screen_nodes(screen, file.string());
  return screen;
}

std::vector<Plot> screen_plots(const MachineScreen& screen) {
  constexpr double kDarkest = 1.2;  // times
  const std::size_t count = screen.nodes.size();
  if (count > kMostInMap) return {};
  // Nodes of a switch beside each other.
  std::vector<std::size_t> order(count), place(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t i, std::size_t k) {
    const ScreenNode &a = screen.nodes[i], &b = screen.nodes[k];
    return std::tuple(a.group, a.host.size(), a.host) < std::tuple(b.group, b.host.size(), b.host);
  });
  for (std::size_t i = 0; i < count; ++i) place[order[i]] = i;
  std::map<std::string, HeatMap> maps;
  for (const LinkScore& link : score_screen(screen).links) {
    HeatMap& map = maps[link.measured];
    if (map.cells.empty()) {
      map.cells.resize(count, std::vector<std::optional<HeatCell>>(count));
      for (const std::size_t node : order) map.rows.push_back(screen.nodes[node].host);
      map.columns = map.rows;
    }
    const double heat = std::clamp(std::log(link.times) / std::log(kDarkest), 0.0, 1.0);
    const std::size_t a = place[static_cast<std::size_t>(link.a)],
                      b = place[static_cast<std::size_t>(link.b)];
    map.cells[a][b] = map.cells[b][a] = HeatCell{fmt::format("{:.2f}", link.times), "", heat};
  }
  std::vector<Plot> plots;
  for (auto& [measured, map] : maps) {
    plots.push_back(
        {fmt::format("pairs-{}", plots.size() + 1), "Pairs of nodes: " + measured,
         fmt::format("darkest: {:g} times as slow as the median of its kind, or more", kDarkest),
         "", "", std::move(map)});
  }
  return plots;
}

ScreenedFacts screened_facts(const MachineScreen& screen, const ScreenVerdict& verdict) {
  ScreenedFacts facts{screen.started_at, {}, {}, verdict.hosts()};
  for (const SlowPart& part : verdict.slow) {
    facts.slow.push_back(part.name);
    facts.sizes.push_back(slower_text(part));
  }
  return facts;
}

Document screen_document(const MachineScreen& screen, const ScreenVerdict& verdict) {
  Document document;
  document.name = "screen-report";  // beside the screen's own file
  document.is_brief = true;
  document.title = fmt::format("{}, {}, {}: backend {}", counted(screen.nodes.size(), "node"),
                               counted(screen.devices.size(), "device"),
                               counted(screen.links.size(), "link"), screen.backend);
  document.warnings = screen.warnings;
  Section section{.headline = screen_headline(verdict)};
  section.table =
      ColumnsOf<SlowPart>()
          .text("part", "part", [](const SlowPart& part) { return part.name; })
          .text("measured", "measured", [](const SlowPart& part) { return part.measured; })
          .interval("times", "slower (%)\n[95 %]", slower_cell)
          .real("p", "p",
                [](const SlowPart& part) {
                  return Cell{fmt::format("{:.1g}", part.p), part.p};
                })
          .text("remarks", "", [](const SlowPart& part) { return join(part.remarks, ", "); })
          .programs()
          .text("kind", "",
                [](const SlowPart& part) { return std::string(name_in(kPartKinds, part.kind)); })
          .programs()
          .table(verdict.slow, "slow");
  std::set<std::string> named;  // one may be slow in several measures
  for (const SlowPart& part : verdict.slow) {
    if (part.remarks.empty() || !named.insert(part.name).second) continue;
    section.findings.emplace_back(part.name + ": " + join(part.remarks, ", "));
  }
  const std::vector<std::string> hosts = verdict.hosts();
  if (!hosts.empty()) {
    section.findings.emplace_back("To leave these nodes out: --exclude=" + join(hosts, ","));
  }
  for (const std::string& sentence : sensitivity_sentences(verdict.compared)) {
    section.findings.emplace_back(sentence);
  }
  section.notes.emplace_back(
      fmt::format("Each part is compared with those of its kind, by the best of its rounds. Of all "
                  "that are named "
                  "at most {:.0f} % are expected to be false. p is of one part, not adjusted.",
                  100 * kFalseDiscoveries));
  section.plots = screen_plots(screen);
  document.sections.push_back(std::move(section));
  document.sections.push_back(
      {.table =
           ColumnsOf<Comparable>()
               .text("of", "parts", [](const Comparable& each) { return each.of; })
               .text("measured", "measured", [](const Comparable& each) { return each.measured; })
               .whole("parts", "number",
                      [](const Comparable& each) { return static_cast<std::int64_t>(each.parts); })
               .real("least", "found from\n(times)",
                     [](const Comparable& each) {
                       return each.least > 0 ? Cell{fmt::format("{:.3f}", each.least), each.least}
                                             : Cell{};
                     })
               .table(verdict.compared, "compared"),
       .shown = Visibility::in_detail});
  document.sections.back().table.in_text = false;
  document.facts = make_facts({{"started_at", screen.started_at},
                               {"backend", screen.backend},
                               {"transport", screen.transport},
                               {"nodes", screen.nodes.size()},
                               {"exclude", hosts}});
  return document;
}

}  // namespace paceline

#include "engine/facts/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/core/text.h"

namespace paceline {

std::string counted_paths(const std::vector<std::string>& paths) {
  std::map<std::string, int> counts;
  for (const std::string& path : paths) ++counts[path];
  std::vector<std::string> texts;
  for (const auto& [path, count] : counts) texts.push_back(fmt::format("{} by {}", count, path));
  return join(texts, ", ");
}

bool has_far_cpus(const GpuFacts& gpu) {
  const std::vector<int> nodes = parse_numbers(gpu.cpus_numa_nodes);
  return gpu.numa_node && !nodes.empty() && std::ranges::count(nodes, *gpu.numa_node) == 0;
}

std::string describe_ports(const std::vector<NetworkPort>& ports) {
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;  // fastest first
  std::vector<NetworkPort> sorted = ports;
  std::ranges::stable_sort(sorted, std::greater(), [](const NetworkPort& port) {
    return std::pair(port.gbit_per_second.value_or(0), port.link);
  });
  for (const NetworkPort& port : sorted) {
    const std::string kind =
        port.link + (port.gbit_per_second ? fmt::format(" {:g} Gb/s", *port.gbit_per_second)
                                          : " of unknown rate");
    if (kinds.empty() || kinds.back().first != kind) kinds.emplace_back(kind, 0);
    kinds.back().second.push_back(port.name);
  }
  std::vector<std::string> texts;
  for (const auto& [kind, names] : kinds) texts.push_back(kind + " (" + join(names, ", ") + ")");
  return join(texts, ", ");
}

}  // namespace paceline

#include "engine/meter/network.h"

#include <set>
#include <string>

#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

std::optional<int> read_numa(const fs::path& card) {
  const auto node = leading_number(first_line(card / "numa_node"));
  return node && *node >= 0 ? std::optional(static_cast<int>(*node)) : std::nullopt;
}

// Where a device's link "device" leads; empty: it is of no card.
fs::path find_card(const fs::path& device) {
  std::error_code ignored;
  const fs::path link = device / "device";
  return fs::exists(link, ignored) ? fs::canonical(link, ignored) : fs::path();
}

// Whether the card has such ports. Linux' Documentation/ABI/stable/sysfs-class-infiniband: "4:
// ACTIVE", "200 Gb/sec (4X HDR)".
bool add_infiniband(const fs::path& device, const fs::path& card, std::vector<NetworkPort>& ports) {
  const std::vector<fs::path> all = list_entries(device / "ports", "");
  const std::size_t before = ports.size();
  for (const fs::path& folder : all) {
    if (!first_line(folder / "state").starts_with("4:")) continue;
    NetworkPort port{.name = device.filename().string()};
    if (all.size() > 1) port.name += ":" + folder.filename().string();
    port.link = first_line(folder / "link_layer");
    if (port.link.empty()) port.link = "InfiniBand";
    port.gbit_per_second = leading_number(first_line(folder / "rate"));
    port.numa_node = read_numa(card);
    ports.push_back(std::move(port));
  }
  return ports.size() > before;
}

}  // namespace

std::vector<NetworkPort> network_ports(const MeterRoots& roots) {
  constexpr double kEthernet = 1;  // ARPHRD_ETHER
  std::vector<NetworkPort> ports;
  std::set<fs::path> cards;
  for (const fs::path& device : list_entries(roots.sys / "class/infiniband", "")) {
    const fs::path card = find_card(device);
    if (add_infiniband(device, card, ports)) cards.insert(card);
  }
  for (const fs::path& device : list_entries(roots.sys / "class/net", "")) {
    const fs::path card = find_card(device);
    std::error_code ignored;
    if (card.empty() || cards.contains(card) || fs::exists(device / "wireless", ignored) ||
        first_line(device / "operstate") != "up" ||
        leading_number(first_line(device / "type")) != kEthernet) {
      continue;
    }
    NetworkPort port{.name = device.filename().string(), .link = "Ethernet"};
    const auto megabits = leading_number(first_line(device / "speed"));  // -1: not known
    if (megabits && *megabits > 0) port.gbit_per_second = *megabits / 1e3;
    port.numa_node = read_numa(card);
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace paceline

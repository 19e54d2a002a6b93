// A node's energy counters that Linux has: RAPL, hwmon, and those of HPE Cray EX.

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "engine/core/text.h"
#include "engine/meter/energy_meter.h"
#include "engine/meter/meter_files.h"

namespace paceline {

// RAPL, the energy counters of Intel's and AMD's CPUs: through powercap (Linux documentation,
// power/powercap/powercap.rst), which only root may read since Linux 5.10, or else through perf's
// PMU "power" (tools/perf: power/energy-pkg/), where perf_event_paranoid allows it.

namespace fs = std::filesystem;

namespace {

constexpr double kUpdateSeconds = 0.001;

struct Zone {
  std::string place;
  Covered covered;
};

// Empty: a part that its package includes, such as "core" and "uncore".
std::optional<Zone> find_zone(const std::string& name, const std::string& parent) {
  if (name.starts_with("package-")) return Zone{"CPU package " + name.substr(8), Covered::cpus};
  if (name == "psys") return Zone{"platform", Covered::platform};
  if (name == "dram" && !parent.empty()) return Zone{"memory of " + parent, Covered::memory};
  return std::nullopt;
}

// Adds the zones of "intel-rapl"; "intel-rapl-mmio" counts the same packages once more. Returns
// whether this user may not read some.
bool find_powercap(const MeterRoots& roots, EnergySources& found) {
  const fs::path folder = roots.sys / "class" / "powercap";
  bool is_refused = false;
  const auto add = [&](const fs::path& file, const std::optional<Zone>& zone) {
    if (!zone) return;
    if (!can_read(file / "energy_uj")) {
      is_refused = true;
      return;
    }
    const auto range = leading_number(first_line(file / "max_energy_range_uj"));
    found.counters.push_back({"RAPL", zone->place, zone->covered, false, range.value_or(0) * 1e-6,
                              kUpdateSeconds, make_reader(file / "energy_uj", 1e-6)});
  };
  for (const fs::path& file : list_entries(folder, "intel-rapl:")) {
    const std::string name = file.filename().string();
    if (std::count(name.begin(), name.end(), ':') != 1) continue;  // below another zone
    const auto zone = find_zone(first_line(file / "name"), "");
    add(file, zone);
    for (const fs::path& part : list_entries(folder, name + ":")) {
      add(part, find_zone(first_line(part / "name"), zone ? zone->place : ""));
    }
  }
  return is_refused;
}

// 2 for "event=0x02".
std::optional<unsigned long> parse_event(const std::string& text) {
  const auto at = text.find("event=0x");
  if (at == std::string::npos) return std::nullopt;
  return std::strtoul(text.c_str() + at + 8, nullptr, 16);
}

// Adds counters of perf, one per package: "cpumask" names the CPU that counts it. Returns whether
// the kernel refused some.
bool find_perf(const MeterRoots& roots, const PerfOpener& open, EnergySources& found) {
  const fs::path folder = roots.sys / "bus" / "event_source" / "devices" / "power";
  const auto type = leading_number(first_line(folder / "type"));
  const std::vector<int> cpus = parse_numbers(first_line(folder / "cpumask"));
  bool is_refused = false;
  for (const auto& [name, covered] :
       {std::pair{"energy-pkg", Covered::cpus}, std::pair{"energy-ram", Covered::memory}}) {
    const auto event = parse_event(first_line(folder / "events" / name));
    const auto scale =
        leading_number(first_line(folder / "events" / (std::string(name) + ".scale")));
    if (!type || !event || !scale) continue;
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      auto count = open(static_cast<int>(*type), *event, cpus[i]);
      if (!count) {
        is_refused = true;
        continue;
      }
      const std::string package = fmt::format("CPU package {}", i);
      found.counters.push_back(
          {"RAPL by perf", covered == Covered::cpus ? package : "memory of " + package, covered,
           false, 0, kUpdateSeconds, [count, scale]() -> std::optional<double> {
             const auto ticks = count();
             return ticks ? std::optional(*ticks * *scale) : std::nullopt;
           }});
    }
  }
  return is_refused;
}

}  // namespace

PerfOpener kernel_perf() {
  return [](int type, unsigned long config, int cpu) -> std::function<std::optional<double>()> {
    perf_event_attr attributes;
    std::memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = static_cast<unsigned>(type);
    attributes.config = config;
    const long opened =
        syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (opened < 0) return {};
    const std::shared_ptr<const int> file(new int(static_cast<int>(opened)), [](const int* open) {
      close(*open);
      delete open;
    });
    return [file]() -> std::optional<double> {
      std::uint64_t count = 0;
      if (read(*file, &count, sizeof count) != sizeof count) return std::nullopt;
      return static_cast<double>(count);
    };
  };
}

void find_rapl(const MeterRoots& roots, const PerfOpener& perf, EnergySources& found) {
  const std::size_t before = found.counters.size();
  const bool by_powercap = find_powercap(roots, found);
  if (!by_powercap && found.counters.size() > before) return;
  found.counters.resize(before);  // a part of the packages would look like all of them
  const bool by_perf = find_perf(roots, perf, found);
  if (!by_perf && found.counters.size() > before) return;
  found.counters.resize(before);
  if (!by_powercap && !by_perf) return;
  found.troubles.push_back(
      {"RAPL counts the CPUs' energy, and this user may not read it (only root since Linux 5.10)",
       fmt::format("ask for read access to energy_uj in {}, or for kernel.perf_event_paranoid=0",
                   (roots.sys / "class" / "powercap").string())});
}

// Averaged powers of hwmon. NVIDIA Grace names its rails in power1_oem_info (Grace Performance
// Tuning Guide, "Power and Thermal Management"): "Module Power Socket 0" is CPU, memory and GPU of
// a superchip, "Grace Power Socket 0" CPU and memory; "CPU" and "SysIO" are parts of these.

void find_hwmon(const MeterRoots& roots, EnergySources& found) {
  for (const fs::path& chip : list_entries(roots.sys / "class" / "hwmon", "hwmon")) {
    for (const fs::path& folder : {chip / "device", chip}) {
      const fs::path file = folder / "power1_average";
      if (!can_read(file)) continue;
      const std::string place = first_line(folder / "power1_oem_info");
      const bool is_module = place.starts_with("Module Power");
      if (!is_module && !place.starts_with("Grace Power")) break;
      const auto interval = leading_number(first_line(folder / "power1_average_interval"));
      found.counters.push_back({"hwmon", place, is_module ? Covered::modules : Covered::cpus, true,
                                0, interval ? *interval * 1e-3 : 1, make_reader(file, 1e-6)});
      break;
    }
  }
}

// HPE Cray EX nodes: /sys/cray/pm_counters, world-readable, updated ten times a second. A file has
// a line such as "1234 J 1700000000000000 us"; "energy" is the node's, the others are its parts.

void find_cray_counters(const MeterRoots& roots, EnergySources& found) {
  const fs::path folder = roots.sys / "cray" / "pm_counters";
  const auto add = [&](const fs::path& file, const std::string& place, Covered covered) {
    if (!can_read(file)) return;
    found.counters.push_back(
        {"Cray pm_counters", place, covered, false, 0, 0.1, make_reader(file, 1)});
  };
  add(folder / "energy", "node", Covered::node);
  add(folder / "cpu_energy", "CPUs", Covered::cpus);
  add(folder / "memory_energy", "memory", Covered::memory);
  for (const fs::path& file : list_entries(folder, "accel")) {
    const std::string name = file.filename().string();
    const auto end = name.find("_energy");
    const bool is_cap = name.find("cap") != std::string::npos;
    if (end == std::string::npos || is_cap) continue;
    add(file, "GPU " + name.substr(5, end - 5), Covered::gpus);
  }
}

}  // namespace paceline

// HPE Cray EX nodes: /sys/cray/pm_counters, world-readable, updated ten times a second. A file has
// a line such as "1234 J 1700000000000000 us"; "energy" is the node's, the others are its parts.
#include "engine/meter/energy_counter.h"
#include "engine/meter/meter_files.h"

namespace paceline {

namespace fs = std::filesystem;

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

// Averaged powers of hwmon. NVIDIA Grace names its rails in power1_oem_info (Grace Performance
// Tuning Guide, "Power and Thermal Management"): "Module Power Socket 0" is CPU, memory and GPU of
// a superchip, "Grace Power Socket 0" CPU and memory; "CPU" and "SysIO" are parts of these.
#include "engine/meter/energy_counter.h"
#include "engine/meter/meter_files.h"

namespace paceline {

namespace fs = std::filesystem;

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

}  // namespace paceline

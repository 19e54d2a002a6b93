#include "engine/meter/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "engine/core/text.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return std::string(trim(line));
}

// The number that a line begins with.
std::optional<double> leading_number(const std::string& line) {
  return to_real(split(line, ' ').front());
}

bool can_read(const fs::path& file) {
  return std::ifstream(file).good();
}

std::vector<fs::path> entries_of(const fs::path& folder, std::string_view beginning) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(beginning)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// "package-0" is "CPU package 0"; a subzone that is not measured by itself has no name.
std::string covers_of_zone(const std::string& name, const std::string& parent) {
  if (name.starts_with("package-")) return "CPU package " + name.substr(8);
  if (name == "psys") return "platform";
  if (name == "dram" && !parent.empty()) return "memory of " + parent;
  return "";  // core, uncore: parts of the package
}

// Unlike "intel-rapl-mmio", which counts the same packages once more.
void find_rapl(const MeterRoots& roots, EnergySources& found) {
  const fs::path folder = roots.sys / "class" / "powercap";
  bool is_refused = false;
  const auto add = [&](const fs::path& zone, const std::string& covers) {
    if (covers.empty()) return;
    if (!can_read(zone / "energy_uj")) {
      is_refused = true;
      return;
    }
    const auto range = leading_number(first_line(zone / "max_energy_range_uj"));
    found.counters.push_back({"RAPL", covers, zone / "energy_uj", EnergyCounter::Unit::microjoules,
                              range.value_or(0) * 1e-6, 0.001});
  };
  for (const fs::path& zone : entries_of(folder, "intel-rapl:")) {
    const std::string name = zone.filename().string();
    if (std::count(name.begin(), name.end(), ':') != 1) continue;  // below another zone
    const std::string covers = covers_of_zone(first_line(zone / "name"), "");
    add(zone, covers);
    for (const fs::path& part : entries_of(folder, name + ":")) {
      add(part, covers_of_zone(first_line(part / "name"), covers));
    }
  }
  if (!is_refused) return;
  found.troubles.push_back(
      {"RAPL counts the CPUs' energy, and only root may read it (since Linux 5.10)",
       fmt::format("ask for read access to energy_uj in {}", folder.string())});
}

void find_cray(const MeterRoots& roots, EnergySources& found) {
  const fs::path folder = roots.sys / "cray" / "pm_counters";
  const auto add = [&](const fs::path& file, const std::string& covers) {
    if (!can_read(file)) return;
    found.counters.push_back(
        {"Cray pm_counters", covers, file, EnergyCounter::Unit::joules, 0, 0.1});
  };
  add(folder / "energy", "node");
  add(folder / "cpu_energy", "CPUs");
  add(folder / "memory_energy", "memory");
  for (const fs::path& file : entries_of(folder, "accel")) {
    const std::string name = file.filename().string();
    const auto end = name.find("_energy");
    const bool is_cap = name.find("cap") != std::string::npos;
    if (end != std::string::npos && !is_cap) add(file, "GPU " + name.substr(5, end - 5));
  }
}

void find_hwmon(const MeterRoots& roots, EnergySources& found) {
  for (const fs::path& chip : entries_of(roots.sys / "class" / "hwmon", "hwmon")) {
    for (const fs::path& place : {chip / "device", chip}) {
      const fs::path file = place / "power1_average";
      if (!can_read(file)) continue;
      std::string covers = first_line(place / "power1_oem_info");
      if (covers.empty()) covers = first_line(chip / "power1_label");
      if (covers.empty()) break;  // nothing says what it measures
      const auto interval = leading_number(first_line(place / "power1_average_interval"));
      found.counters.push_back({"hwmon", covers, file, EnergyCounter::Unit::microwatts, 0,
                                interval ? *interval * 1e-3 : 1});
      break;
    }
  }
}

// In joules, or watts.
std::optional<double> value_of(const EnergyCounter& counter) {
  const auto number = leading_number(first_line(counter.file));
  if (!number) return std::nullopt;
  return counter.unit == EnergyCounter::Unit::joules ? *number : *number * 1e-6;
}

}  // namespace

EnergySources energy_sources(const MeterRoots& roots) {
  EnergySources found;
  find_cray(roots, found);
  find_rapl(roots, found);
  find_hwmon(roots, found);
  return found;
}

EnergyMeter::EnergyMeter(std::vector<EnergyCounter> counters, std::function<double()> now)
    : now_(std::move(now)), start_(now_()), last_(start_) {
  for (EnergyCounter& counter : counters) {
    Watched& watched = watched_.emplace_back();
    watched.last = value_of(counter);
    watched.is_lost = !watched.last;
    watched.counter = std::move(counter);
  }
}

void EnergyMeter::update() {
  const double now = now_();
  for (Watched& watched : watched_) {
    const auto value = value_of(watched.counter);
    if (!value || !watched.last) {
      watched.is_lost = true;
      continue;
    }
    if (watched.counter.is_power()) {
      watched.joules += (*value + *watched.last) / 2 * (now - last_);
    } else if (*value >= *watched.last) {
      watched.joules += *value - *watched.last;
    } else if (watched.counter.range > *watched.last) {
      watched.joules += watched.counter.range - *watched.last + *value;
    } else {
      watched.is_lost = true;  // it began anew, nobody knows when
    }
    watched.last = value;
  }
  last_ = now;
}

std::vector<EnergyReading> EnergyMeter::readings() const {
  std::vector<EnergyReading> all;
  for (const Watched& watched : watched_) {
    EnergyReading reading{watched.counter, watched.joules, last_ - start_, ""};
    const double updates = reading.seconds / std::max(watched.counter.update_seconds, 1e-9);
    if (watched.is_lost) {
      reading.trouble = "it could not be read all the time";
    } else if (updates < kFewestUpdates) {
      reading.trouble = fmt::format("{:.3g} s are fewer than {:g} of its updates", reading.seconds,
                                    kFewestUpdates);
    } else if (watched.joules <= 0) {
      reading.trouble = "it stood still";
    }
    all.push_back(std::move(reading));
  }
  return all;
}

}  // namespace paceline

// Small files of one value, as sysfs has them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

std::string first_line(const std::filesystem::path& file);  // trimmed; empty if it cannot be read
// The number that a line begins with.
std::optional<double> leading_number(const std::string& line);
bool can_read(const std::filesystem::path& file);
// Sorted. None if there is no such folder.
std::vector<std::filesystem::path> list_entries(const std::filesystem::path& folder,
                                                std::string_view beginning);
// Reads the file's number, times `scale`.
std::function<std::optional<double>()> make_reader(const std::filesystem::path& file, double scale);

// The folders that meters read, replaceable in tests.

struct MeterRoots {
  std::filesystem::path proc = "/proc", sys = "/sys";
};

// The kernel's, or proc and sys of the folder that PACELINE_METER_ROOT names.
MeterRoots meter_roots();

// Small kernel files that several meters read.

// Times of some CPUs since boot, summed, in seconds.
struct CpuTimes {
  double tasks = 0;      // user, nice, system
  double stolen = 0;     // by the hypervisor
  double all = 0;        // including interrupts and idle time: CPUs times seconds
  std::size_t cpus = 0;  // number of the requested CPUs that the kernel reports
};

// Empty if /proc/stat reports none of them.
std::optional<CpuTimes> cpu_times(const std::vector<int>& cpus, const MeterRoots& roots);

struct LoadAverage {
  double one_minute = 0;
  int runnable = 0;  // runnable tasks of the machine now, including the caller
};
std::optional<LoadAverage> load_average(const MeterRoots& roots);

double seconds_a_tick();

}  // namespace paceline

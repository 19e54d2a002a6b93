// How a run used a GPU, for the record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paceline {

// One GPU over one run. Means and shares are over samples.
struct GpuUtilization {
  std::string pci, name, uuid, driver;
  int samples = 0;
  double seconds = 0;
  std::optional<double> utilization, memory_utilization;  // 0 to 1, as published tables give it
  std::optional<double> sm_mhz, memory_mhz;               // means
  std::optional<int> least_sm_mhz, most_sm_mhz;           // lowest seen; maximum of the card
  std::optional<double> watts, watts_limit;               // mean; limit in force
  std::optional<double> joules;                           // from the card's energy counter
  std::optional<int> celsius;                             // maximum
  // Maximum in use by all processes; total.
  std::optional<std::int64_t> memory_bytes, memory_bytes_total;
  std::optional<std::int64_t> uncorrected_errors;  // ECC errors during the run
  std::optional<bool> ecc, mig, mps;
  std::optional<std::string> compute_mode;

  // Everything that limited the clocks in some sample, except idleness: "power cap", "hardware
  // thermal".
  std::vector<std::string> clock_limits;
  std::optional<double> power_capped_share;
  // Slowed by heat or failing power in any sample: such a run is excluded from comparisons. A power
  // cap does not count, because large cards run at theirs all the time.
  std::optional<bool> throttled;
};

}  // namespace paceline

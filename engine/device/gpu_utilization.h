// How a GPU was used while something ran, for the record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paceline {

// Of one GPU over one run. Means and shares are over samples.
struct GpuUtilization {
  std::string pci, name, uuid, driver;
  int samples = 0;
  double seconds = 0;
  std::optional<double> utilization, memory_utilization;  // 0 to 1, as published tables give it
  std::optional<double> sm_mhz, memory_mhz;               // means
  std::optional<int> least_sm_mhz, most_sm_mhz;           // seen; what the card could do
  std::optional<double> watts, watts_limit;               // mean; in force
  std::optional<double> joules;                           // of the card's own counter
  std::optional<int> celsius;                             // the highest
  std::optional<std::int64_t> memory_bytes, memory_bytes_total;  // the most in use by all; there
  std::optional<std::int64_t> uncorrected_errors;                // of ECC, during the run
  std::optional<bool> ecc, mig, mps;
  std::optional<std::string> compute_mode;

  // What held the clocks down in some sample, being idle aside: "power cap", "hardware thermal".
  std::vector<std::string> clock_limits;
  std::optional<double> power_capped_share;
  // Slowed by heat or by failing power in any sample: such a run is compared with none. A power cap
  // is no such thing: large cards run at theirs for as long as they compute.
  std::optional<bool> throttled;
};

}  // namespace paceline

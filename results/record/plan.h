// What was trained, and the hardware used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record/bounds.h"

namespace paceline {

struct MemoryFacts {
  std::optional<std::int64_t> activations, parameters_gradients_state, statistics, scratch, total;

  template <typename Each>
  void fields(Each& each) {
    each("activations", activations);
    each("parameters_gradients_state", parameters_gradients_state);
    each("statistics", statistics);
    each("scratch", scratch);
    each("total", total);
  }
};

// After `backward_seconds` of a step's backward, the first `bytes` of the gradients are final.
struct ReadyGradientsFacts {
  std::int64_t bytes = 0;
  std::optional<double> backward_seconds;

  template <typename Each>
  void fields(Each& each) {
    each("bytes", bytes, kRequiredPositive);
    each("backward_seconds", backward_seconds);
  }
};

struct PlanFacts {
  std::optional<std::int64_t> parameter_count;
  std::optional<double> flops_per_sample;
  std::vector<std::int64_t> bucket_bytes;
  std::vector<ReadyGradientsFacts> gradients;  // in the order in which they become ready
  MemoryFacts memory_bytes;
  std::optional<bool> gradients_in_backend_memory, overlapped;
  std::optional<double> global_batch, learning_rate;

  template <typename Each>
  void fields(Each& each) {
    each("parameter_count", parameter_count);
    each("flops_per_sample", flops_per_sample);
    each("bucket_bytes", bucket_bytes);
    each("gradients", gradients);
    each("memory_bytes", memory_bytes);
    each("gradients_in_backend_memory", gradients_in_backend_memory);
    each("overlapped", overlapped);
    each("global_batch", global_batch);
    each("learning_rate", learning_rate);
  }
};

struct GpuFacts {
  std::string name, pci, uuid, driver;
  std::optional<std::int64_t> samples;
  std::optional<double> seconds;
  // Everything that limited clocks in some sample: "power cap".
  std::vector<std::string> clock_limits;
  std::optional<double> utilization, memory_utilization;
  std::optional<double> sm_mhz, least_sm_mhz, most_sm_mhz, memory_mhz, watts, watts_limit, joules,
      celsius;
  std::optional<std::int64_t> memory_bytes, memory_bytes_total, uncorrected_errors;
  std::optional<double> power_capped_share;
  std::optional<bool> ecc, mig, mps;
  std::string compute_mode;
  std::optional<bool> throttled;

  template <typename Each>
  void fields(Each& each) {
    each("name", name);
    each("pci", pci);
    each("uuid", uuid);
    each("driver", driver);
    each("samples", samples);
    each("seconds", seconds);
    each("clock_limits", clock_limits);
    each("utilization", utilization, kShare);
    each("memory_utilization", memory_utilization, kShare);
    each("sm_mhz", sm_mhz);
    each("least_sm_mhz", least_sm_mhz);
    each("most_sm_mhz", most_sm_mhz);
    each("memory_mhz", memory_mhz);
    each("watts", watts);
    each("watts_limit", watts_limit);
    each("joules", joules);
    each("celsius", celsius, kAny);
    each("memory_bytes", memory_bytes);
    each("memory_bytes_total", memory_bytes_total);
    each("uncorrected_errors", uncorrected_errors);
    each("power_capped_share", power_capped_share);
    each("ecc", ecc);
    each("mig", mig);
    each("mps", mps);
    each("compute_mode", compute_mode);
    each("throttled", throttled);
  }
};

struct ProbeFacts {
  std::optional<double> flops_per_second, bytes_per_second;

  template <typename Each>
  void fields(Each& each) {
    each("flops_per_second", flops_per_second);
    each("bytes_per_second", bytes_per_second);
  }
};

}  // namespace paceline

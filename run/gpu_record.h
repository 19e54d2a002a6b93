// The record's sections about GPUs.
#pragma once

#include <memory>
#include <vector>

#include "results/run_record.h"
#include "run/world.h"

namespace paceline {

// GPU usage of all replicas, in rank order.
struct GpuUse {
  std::vector<GpuFacts> each;
  std::optional<double> utilization;  // mean over GPUs that report it
  bool throttled = false;             // any GPU, by heat or failing power
};

// Watches this process's GPUs from construction on. Does nothing without GPUs. An unavailable
// driver causes a warning only.
class GpuReport {
 public:
  explicit GpuReport(const ChosenGpus& gpus);

  // The same on every rank. Collective.
  GpuUse collect(World& world);
  // Of this process's GPUs alone.
  GpuUse collect_here();

 private:
  std::vector<GpuUtilization> stop();

  std::size_t replicas_;
  std::unique_ptr<GpuWatch> watch_;
};

}  // namespace paceline

// The record's sections on GPUs.
#pragma once

#include <memory>
#include <vector>

#include "engine/core/json.h"
#include "run/world.h"

namespace paceline {

// Watches this process's GPUs from when it is made; does nothing where there are none. A driver
// that cannot be asked costs a warning, not the run.
class GpuReport {
 public:
  explicit GpuReport(const ChosenGpus& gpus);

  // Of all replicas, in rank order, on every rank: {"gpus": [...], "utilization": 0..1 or null,
  // "throttled": true or false}. Collective.
  Json collect(World& world);

 private:
  std::size_t replicas_;
  std::unique_ptr<GpuWatch> watch_;
};

}  // namespace paceline

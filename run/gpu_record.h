// The record's sections on GPUs.
#pragma once

#include <memory>
#include <vector>

#include "results/run_record.h"
#include "run/world.h"

namespace paceline {

// How all replicas used theirs, in rank order.
struct GpuUse {
  std::vector<GpuFacts> each;
  std::optional<double> utilization;  // the mean over GPUs that know theirs
  bool throttled = false;             // some GPU, by heat or failing power
};

// Watches this process's GPUs from when it is made; does nothing where there are none. A driver
// that cannot be asked costs a warning, not the run.
class GpuReport {
 public:
  explicit GpuReport(const ChosenGpus& gpus);

  // The same on every rank. Collective.
  GpuUse collect(World& world);

 private:
  std::size_t replicas_;
  std::unique_ptr<GpuWatch> watch_;
};

}  // namespace paceline

// The record's section about energy.
#pragma once

#include <memory>
#include <vector>

#include "engine/meter/energy_meter.h"
#include "engine/train/run_part.h"
#include "results/run_record.h"
#include "run/world.h"

namespace paceline {

// Watches this process's GPUs and, on the first process of a node, the node's counters.
class EnergyReport {
 public:
  EnergyReport(const ChosenGpus& gpus, bool is_first_of_node);

  // Sleeps on all ranks as long as the slowest meter takes to tell the power before the first step.
  // Collective.
  void measure_idle(World& world);
  void measure_idle_here();
  void enter(RunPart part);

  // Combines all nodes, and returns the same on every rank. Collective.
  EnergyFacts collect(World& world, int nodes);
  // Of this node. On several it tells nothing about the others.
  EnergyFacts collect_here(int nodes);

 private:
  void sleep_idle(double seconds);
  std::vector<MeterFacts> meters();

  std::size_t gpus_;
  std::unique_ptr<EnergyWatch> watch_;
};

// Adds up the meters of all processes, and chooses among them. A meter that is not on every node,
// or not of each of `gpus` GPUs (0: replicas are on cores), has a trouble instead of joules. The
// node's own meter comes first, then modules, then GPUs, CPUs and memory together, each by a
// counter rather than by samples. A part that is measured, but tells nothing, leaves the sum
// without joules.
EnergyFacts collect_energy(const std::vector<MeterFacts>& of_processes, int nodes, int gpus);

}  // namespace paceline

// The machine that a run was made on, as far as its times depend on it.
#pragma once

#include <string>
#include <vector>

#include "results/record.h"

namespace paceline {

// Of one node, the GPUs of a run as one text. What is empty or 0 is not known.
struct Machine {
  std::string cpu_model, gpu;
  int cpus = 0;  // hardware threads, whether or not the run might use them
  double memory_bytes = 0;

  bool is_known() const { return !cpu_model.empty() || !gpu.empty() || cpus > 0; }
  std::string text() const;  // "AMD EPYC 7B13, 64 CPUs, 256 GB"; "an unknown machine"
};

Machine machine_of(const Record& record);

// Whether runs of these may be compared: the same CPUs and GPUs, as many CPUs, about as much
// memory. What one of them does not tell it may have.
bool alike(const Machine& a, const Machine& b);

// One an unlike machine, the best known of its kind. What is not known at all is none.
std::vector<Machine> kinds_of_machines(std::vector<Machine> machines);

// "27 runs of another machine (AMD EPYC 7B13, 64 CPUs, 256 GB) are not counted", a line a machine;
// an empty text is no machine. `machines` has one a run.
std::vector<std::string> not_counted_lines(const std::vector<std::string>& machines);

}  // namespace paceline

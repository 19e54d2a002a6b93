// The properties of a machine on which times depend.
#pragma once

#include <string>
#include <vector>

namespace paceline {

class Record;

// One node, with the GPUs of a run as one text. Empty or 0: unknown.
struct Machine {
  std::string cpu_model, gpu;
  int cpus = 0;  // hardware threads, usable by the run or not
  double memory_bytes = 0;

  bool is_known() const { return !cpu_model.empty() || !gpu.empty() || cpus > 0; }
  std::string text() const;  // "AMD EPYC 7B13, 64 CPUs, 256 GB"; "an unknown machine"
};

Machine identify_machine(const Record& record);

// Whether runs on these machines may be compared: same CPU model, same GPUs, same number of CPUs,
// similar memory. Unknown properties match.
bool alike(const Machine& a, const Machine& b);

// One entry per distinct machine, the one with the most known properties. Omits completely unknown
// ones.
std::vector<Machine> kinds_of_machines(std::vector<Machine> machines);

// Of each machine the shortest name that tells its kind apart: "AMD EPYC 9654", with the CPUs, then
// the memory, where the models are the same. Empty if all are of one kind, or if it is unknown.
std::vector<std::string> name_machines(const std::vector<Machine>& machines);

// "27 runs of another machine (AMD EPYC 7B13, 64 CPUs, 256 GB) are not counted", one line per
// machine. `machines` has one entry per run; ignores empty ones.
std::vector<std::string> not_counted_lines(const std::vector<std::string>& machines);

}  // namespace paceline

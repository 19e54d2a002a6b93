// What this machine has for us: the CPUs we may use and how they hang together, and memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

// CPU numbers as the kernel gives them, ascending.
using CpuSet = std::vector<int>;

// The calling thread's affinity mask. Never empty.
CpuSet usable_cpus();

// One hardware thread. `core` and `numa` are numbered from 0 over the machine.
struct Cpu {
  int id = 0, core = 0, numa = 0;
};

struct Topology {
  std::string cpu_model;  // "AMD EPYC 9654 96-Core Processor", or "unknown CPU"
  std::vector<Cpu> cpus;  // the usable ones, near ones together, a core's threads adjacent
  int machine_cpus = 0;   // usable or not
  int machine_cores = 0;  // physical
  int numa_nodes = 0;     // of the machine
  std::int64_t memory_bytes = 0;

  int usable_cores() const;
  bool hyperthreads() const { return machine_cpus > machine_cores; }
};

// Read by hwloc. `synthetic` ("numa:2 core:4 pu:2") describes the CPUs of a machine for tests.
Topology topology_of_machine();
Topology synthetic_topology(const std::string& synthetic);

// aarch64's kernels give no model, but numbers in hexadecimal: "Neoverse-V2" (Grace), or the
// numbers, so that unlike machines have unlike names; "unknown CPU" without them.
std::string arm_model(const std::string& implementer, const std::string& part);

// "AMD EPYC; 2 of 2 CPUs usable (0-1), 2 cores, 1 NUMA node, 50.6 GB"
std::string summary(const Topology& topology);

}  // namespace paceline

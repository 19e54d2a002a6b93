// This machine: usable CPUs, their topology, and memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

// CPU numbers of the kernel, ascending.
using CpuSet = std::vector<int>;

// The calling thread's affinity mask. Never empty.
CpuSet usable_cpus();

// One hardware thread. `core` and `numa` are numbered from 0 across the machine.
struct Cpu {
  int id = 0, core = 0, numa = 0;
};

struct Topology {
  std::string cpu_model;  // "AMD EPYC 9654 96-Core Processor", or "unknown CPU"
  std::vector<Cpu> cpus;  // usable ones in topology order; threads of a core are adjacent
  int machine_cpus = 0;   // usable or not
  int machine_cores = 0;  // physical
  int numa_nodes = 0;     // of the machine
  std::int64_t memory_bytes = 0;

  int usable_cores() const;
  bool hyperthreads() const { return machine_cpus > machine_cores; }
};

// Uses hwloc. `synthetic` ("numa:2 core:4 pu:2") describes a machine for tests.
Topology topology_of_machine();
Topology synthetic_topology(const std::string& synthetic);

// aarch64 kernels report hexadecimal ids instead of a model. Returns "Neoverse-V2" (Grace), or the
// ids, so that different CPUs have different names; "unknown CPU" without ids.
std::string arm_model(const std::string& implementer, const std::string& part);

// "AMD EPYC; 2 of 2 CPUs usable (0-1), 2 cores, 1 NUMA node, 50.6 GB"
std::string summary(const Topology& topology);

}  // namespace paceline

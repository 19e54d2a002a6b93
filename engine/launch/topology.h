// This machine: usable CPUs, their topology, and memory.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "engine/launch/process_rank.h"

namespace paceline {

// CPU numbers of the kernel, ascending.
using CpuSet = std::vector<int>;

// The calling thread's affinity mask. Never empty.
CpuSet usable_cpus();

// One hardware thread. `core` is numbered from 0 across the machine, `numa` by the kernel.
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
  // The NUMA node that a GPU is attached to, by its PCI id, where it is one node of several.
  std::map<std::string, int> gpu_numa;

  int usable_cores() const;
  std::optional<int> numa_of_gpu(const std::string& pci) const;
  std::set<int> find_nodes(const CpuSet& set) const;
  bool hyperthreads() const { return machine_cpus > machine_cores; }
};

// Uses hwloc. For tests, `synthetic` ("numa:2 core:4 pu:2") or a file of lstopo describes a
// machine.
Topology topology_of_machine();
Topology synthetic_topology(const std::string& synthetic);
Topology stored_topology(const std::filesystem::path& xml);

// aarch64 kernels report hexadecimal ids instead of a model. Returns "Neoverse-V2" (Grace), or the
// ids, so that different CPUs have different names; "unknown CPU" without ids.
std::string arm_model(const std::string& implementer, const std::string& part);

// Divides a replica's CPUs among its threads, and checks the numbers before anything starts.

// Threads of one replica. With 0 input or communication threads, the compute thread does that work
// inline.
struct ThreadPlan {
  int compute = 1, input = 0, comm = 0;
  int total() const { return compute + input + comm; }
};

// The user's request. Defaults: 0 input, 0 communication, and the rest for compute.
struct ThreadRequest {
  std::optional<int> compute, input, comm;
};

// Throws usage with a cure if the threads exceed `cpus_per_replica`.
ThreadPlan plan_threads(int cpus_per_replica, const ThreadRequest& request);

// Checks that `replicas` replicas of `cpus_per_replica` CPUs each fit in `mask`, the CPUs that this
// task (or all tasks about to be started here) may use. Throws usage with a cure if not: always if
// one replica alone needs more than the mask, else unless `oversubscribe`.
void check_mask(const CpuSet& mask, int replicas, int cpus_per_replica, bool oversubscribe);

// Assigns CPUs to replicas and tasks.

// One set of `cpus_each` CPUs for each of `parts`. `usable` is in topology order, so sets are
// contiguous. While there are enough cores, a set takes one hardware thread per core; beyond that,
// all threads, those of a core together. Past the end it wraps around and sets share CPUs. That is
// oversubscription, or the mask belongs to this task alone and any part of it is right. Throws
// usage if one set does not fit into `usable`.
//
// `numa` has the node that each part should be on, kAnyNuma or nothing if it does not matter. While
// that node has enough CPUs, the part is there.
inline constexpr int kAnyNuma = -1;
std::vector<CpuSet> split_cpus(const std::vector<Cpu>& usable, int parts, int cpus_each,
                               const std::vector<int>& numa = {});

// The CPUs of this task: the local_rank-th part of the mask. Correct for a mask that all tasks of
// the node share (Paceline's mpirun, --bind-to none), and for one that belongs to this task alone
// (srun, --bind-to core).
CpuSet cpus_of_task(const std::vector<Cpu>& usable, const ProcessRank& process, int cpus_per_task,
                    const std::vector<int>& numa = {});

// Binds the calling thread; threads started later inherit the binding. Throws internal.
void bind_this_thread(const CpuSet& cpus);

// "0-3,8"
std::string format_cpus(const CpuSet& cpus);

// Assigns GPUs to replicas. Pure logic on the list of visible GPUs, so that it can be tested
// without a GPU.
//
// Launchers either show each task its own GPU (srun --gpus-per-task, CUDA_VISIBLE_DEVICES), or show
// all GPUs of a node to every task, which then chooses by local rank. Only the numbers tell which.
// So ranks compare PCI ids afterwards: two tasks with the same GPU would otherwise hang or fail
// inside a library.

struct Gpu {
  int index = -1;    // among the visible ones, in the CUDA runtime's order
  std::string pci;   // "0000:1b:00.0", of the card; MIG instances of a card share it
  std::string uuid;  // "GPU-5c8b...", "MIG-..."
  std::string name;  // "NVIDIA H200"
};

// Whether several replicas may use one GPU: possible through host memory, and through NCCL if the
// user enables it.
enum class GpuSharing { refused, allowed };

// The GPUs of this task's `replicas`: all visible ones if there are exactly that many, else its
// share of those that all tasks of the node see. `environment` is used only for the cure. Throws
// usage if there are too few.
std::vector<Gpu> choose_gpus(const std::vector<Gpu>& visible, const ProcessRank& process,
                             int replicas, const Environment& environment,
                             GpuSharing sharing = GpuSharing::refused);

// A replica's GPU, as sent to the other ranks with an all_gather. The uuid, if known, distinguishes
// cards of hosts that have the same name, and parts of a card (MIG).
struct GpuCard {
  std::array<char, 64> host{};
  std::array<char, 32> pci{};
  std::array<char, 48> uuid{};
};
GpuCard describe_card(const Gpu& gpu, const std::string& host);

// `cards` in rank order. Throws usage naming ranks and GPU if two ranks have the same one, with
// `cure`, or else one that `environment` suggests.
void check_distinct(const std::vector<GpuCard>& cards, const Environment& environment,
                    const std::string& cure = "");

// NCCL_MULTI_RANK_GPU_ENABLE=1 lets ranks of several processes share a GPU.
bool is_nccl_sharing_enabled(const Environment& environment);
// PACELINE_NCCL_RANKS_AS_NODES=1, to try NCCL with several ranks on one card, of any version: each
// rank is a node of its own to it, so they meet over sockets. No speed of it means anything.
bool are_nccl_ranks_nodes(const Environment& environment);

// Normalizes PCI ids of CUDA, NVML and the kernel: "00000000:1B:00.0" becomes "0000:1b:00.0".
std::string canonical_pci(std::string_view text);

}  // namespace paceline

// Assigns GPUs to replicas. Pure logic on the list of visible GPUs, so that it can be tested
// without a GPU.
//
// Launchers either show each task its own GPU (srun --gpus-per-task, CUDA_VISIBLE_DEVICES), or show
// all GPUs of a node to every task, which then chooses by local rank. Only the numbers tell which.
// So ranks compare PCI ids afterwards: two tasks with the same GPU would otherwise hang or fail
// inside a library.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "engine/launch/process_rank.h"

namespace paceline {

struct Gpu {
  int index = -1;    // among the visible ones, in the CUDA runtime's order
  std::string pci;   // "0000:1b:00.0", of the card; MIG instances of a card share it
  std::string uuid;  // "GPU-5c8b...", "MIG-..."
  std::string name;  // "NVIDIA H200"
};

// Whether several replicas may use one GPU: possible through host memory, never through NCCL.
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

// `cards` in rank order. Throws usage naming ranks and GPU if two ranks have the same one.
void check_distinct(const std::vector<GpuCard>& cards, const Environment& environment);

// Normalizes PCI ids of CUDA, NVML and the kernel: "00000000:1B:00.0" becomes "0000:1b:00.0".
std::string canonical_pci(std::string_view text);

}  // namespace paceline

// Which GPU a replica uses. Pure logic on what the CUDA runtime says is visible, so that it is the
// same, and tested, without a card.
//
// A launcher either shows each task its own GPU (srun --gpus-per-task, CUDA_VISIBLE_DEVICES), or
// shows every task of a node all of them; then the local rank chooses. Which of the two it was
// shows only in the numbers, so ranks afterwards compare PCI ids: two tasks that were both shown
// one and the same card would else hang or fail deep inside a library.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "engine/launch/process_rank.h"

namespace paceline {

struct Gpu {
  int index = -1;    // among the visible ones, as the CUDA runtime numbers them
  std::string pci;   // "0000:1b:00.0", of the card: parts of one (MIG) have the same
  std::string uuid;  // "GPU-5c8b...", "MIG-..."
  std::string name;  // "NVIDIA H200"
};

// Whether several replicas may use one GPU: correct through host memory, never through NCCL.
enum class GpuSharing { refused, allowed };

// The GPUs of this task's `replicas`: all that it sees if these are as many, else its part of what
// every task of the node sees. `environment` is read for the cure only. Throws usage where there
// are too few.
std::vector<Gpu> choose_gpus(const std::vector<Gpu>& visible, const ProcessRank& process,
                             int replicas, const Environment& environment,
                             GpuSharing sharing = GpuSharing::refused);

// What a replica tells the others of its GPU; fit for an all_gather. The uuid, where it is known,
// tells cards of hosts apart that have one name, and parts of a card (MIG).
struct GpuCard {
  std::array<char, 64> host{};
  std::array<char, 32> pci{};
  std::array<char, 48> uuid{};
};
GpuCard card_of(const Gpu& gpu, const std::string& host);

// `cards` in rank order. Throws usage, naming the ranks and the card, where two ranks have the
// same.
void check_distinct(const std::vector<GpuCard>& cards, const Environment& environment);

// One form of a PCI id for CUDA's, NVML's and the kernel's: "00000000:1B:00.0" is "0000:1b:00.0".
std::string canonical_pci(std::string_view text);

}  // namespace paceline

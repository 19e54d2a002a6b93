#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/topology.h"

namespace paceline {

using namespace std::string_literals;

namespace {

// The variable that may hide GPUs from this task, with its value.
std::string describe_hiding(const Environment& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible == environment.end()) return "";
  return fmt::format("CUDA_VISIBLE_DEVICES={}", visible->second);
}

std::string suggest_gpus(const Environment& environment, int gpus) {
  if (environment.count("SLURM_JOB_ID") != 0) {
    return fmt::format("ask for --gres=gpu:{} with --gpu-bind=none, or lower --gpus", gpus);
  }
  if (environment.count("CUDA_VISIBLE_DEVICES") != 0) {
    return "unset CUDA_VISIBLE_DEVICES or give each task its own, or lower --gpus";
  }
  return "lower --gpus, or start on more nodes";
}

}  // namespace

std::vector<Gpu> choose_gpus(const std::vector<Gpu>& visible, const ProcessRank& process,
                             int replicas, const Environment& environment, GpuSharing sharing) {
  const auto seen = static_cast<int>(visible.size());
  if (seen == replicas) return visible;
  const int needed = process.local_size * replicas;
  if (seen == 0 || (seen < needed && sharing == GpuSharing::refused)) {
    throw usage_error(fmt::format("{} replicas on this node need {} GPUs, but {} {} visible",
                                  needed, needed, seen, seen == 1 ? "is" : "are"),
                      describe_hiding(environment), suggest_gpus(environment, needed));
  }
  std::vector<Gpu> chosen;
  for (int i = 0; i < replicas; ++i) {
    const int at = (process.local_rank * replicas + i) % seen;
    chosen.push_back(visible[static_cast<std::size_t>(at)]);
  }
  return chosen;
}

GpuCard describe_card(const Gpu& gpu, const std::string& host) {
  GpuCard card;
  copy_text(host, card.host);
  copy_text(canonical_pci(gpu.pci), card.pci);
  // CUDA names a slice "NVIDIA H200 MIG 1g.18gb", and gives its UUID without the prefix.
  const bool slice = gpu.name.find(" MIG ") != std::string::npos && gpu.uuid.starts_with("GPU-");
  const std::string uuid = slice ? "MIG-" + gpu.uuid.substr(4) : gpu.uuid;
  copy_text(uuid, card.uuid);
  return card;
}

void check_distinct(const std::vector<GpuCard>& cards, const Environment& environment,
                    const std::string& cure) {
  std::map<std::pair<std::string, std::string>, std::size_t> first;
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const std::string host = cards[rank].host.data(), pci = cards[rank].pci.data();
    const std::string uuid = cards[rank].uuid.data();
    const auto [it, is_new] =
        first.try_emplace(uuid.empty() ? std::pair(host, pci) : std::pair(uuid, ""s), rank);
    if (is_new) continue;
    const auto on_host =
        std::ranges::count_if(cards, [&](const GpuCard& card) { return host == card.host.data(); });
    throw usage_error(fmt::format("ranks {} and {} have the same GPU {}", it->second, rank, pci),
                      fmt::format("host {}", host),
                      cure.empty() ? suggest_gpus(environment, static_cast<int>(on_host)) : cure);
  }
}

bool is_nccl_sharing_enabled(const Environment& environment) {
  return environment_value(environment, "NCCL_MULTI_RANK_GPU_ENABLE") == "1";
}

bool are_nccl_ranks_nodes(const Environment& environment) {
  return environment_value(environment, "PACELINE_NCCL_RANKS_AS_NODES") == "1";
}

std::string canonical_pci(std::string_view text) {
  std::string pci = to_lower(text);
  const std::size_t domain = pci.find(':');
  // NVML writes the domain with 8 digits, others with 4.
  if (domain != std::string::npos && domain > 4 && pci.find_first_not_of('0') >= domain - 4) {
    pci.erase(0, domain - 4);
  }
  return pci;
}

}  // namespace paceline

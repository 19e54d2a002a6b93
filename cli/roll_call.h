// What every rank tells every other at the start, and the refusals that need all ranks' word.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/launch/topology.h"

namespace paceline {

struct RankCard {
  std::array<char, 64> host{};
  std::array<char, 128> cpus{};  // "0-3": those that the replica is bound to
  std::uint64_t run = 0;         // hash of build, parameters and data
};

// The cards of all ranks, in rank order. `cpus` are those of this process's replicas. Collective;
// where one process holds them all nothing is sent.
std::vector<RankCard> call_roll(std::vector<std::unique_ptr<Communicator>>& communicators,
                                const std::vector<CpuSet>& cpus, std::uint64_t run);

// Whether replicas share CPUs; throws usage for that unless `oversubscribe`, and mismatch where a
// rank runs something else than rank 0.
bool check_roll(const std::vector<RankCard>& cards, bool oversubscribe);

}  // namespace paceline

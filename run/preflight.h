// What every rank tells every other at the start, and the refusals that need all ranks' word.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/comm/checks/config_check.h"
#include "engine/comm/communicator.h"
#include "engine/launch/topology.h"
#include "results/parameters.h"

namespace paceline {

struct RankCard {
  std::string host;
  std::string cpus;     // "0-3": those that the replica is bound to
  int other_jobs = -1;  // of Slurm on that host; -1: not known
};

// Its CPUs as numbers.
CpuSet cpus_of(const RankCard& card);

// What tells builds apart, and every parameter that changes what is measured, but for the names of
// files, whose content is compared. Rows for exchange_rank_cards().
std::vector<ConfigRow> rows_of_build();
std::vector<ConfigRow> rows_of(const Point& parameters);

// The cards of all ranks, in rank order, once all have the same `rows`; else throws mismatch with
// those that differ. `cpus` are those of this process's replicas. Collective; where one process
// holds them all nothing is sent.
std::vector<RankCard> exchange_rank_cards(std::vector<std::unique_ptr<Communicator>>& communicators,
                                          const std::vector<CpuSet>& cpus,
                                          const std::vector<ConfigRow>& rows);

// Of Slurm on this host, beside this one; -1: not in a job, or hidden.
int count_other_jobs();

// Whether replicas share CPUs; throws usage for that unless `oversubscribe`.
bool check_rank_cards(const std::vector<RankCard>& cards, bool oversubscribe);

}  // namespace paceline

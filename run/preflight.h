// Exchanges facts between all ranks before the start, and rejects inconsistent runs.
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
  std::string cpus;     // "0-3": the CPUs to which the replica is bound
  int other_jobs = -1;  // other Slurm jobs on that host; -1: unknown
};

// The card's CPUs as numbers.
CpuSet list_cpus(const RankCard& card);

// Rows that distinguish builds, and all parameters that affect measurements. Excludes file names,
// because contents are compared. For exchange_rank_cards().
std::vector<ConfigRow> rows_of_build();
std::vector<ConfigRow> make_rows(const Point& parameters);

// The cards of all ranks, in rank order. Throws mismatch with the differing rows unless all ranks
// have the same `rows`. `cpus` belong to this process's replicas. Collective; sends nothing if one
// process holds all ranks.
std::vector<RankCard> exchange_rank_cards(std::vector<std::unique_ptr<Communicator>>& communicators,
                                          const std::vector<CpuSet>& cpus,
                                          const std::vector<ConfigRow>& rows);

// Number of other Slurm jobs on this host. -1: not in a job, or hidden.
int count_other_jobs();

// Whether replicas share CPUs. Throws usage in that case unless `oversubscribe`.
bool check_rank_cards(const std::vector<RankCard>& cards, bool oversubscribe);

}  // namespace paceline

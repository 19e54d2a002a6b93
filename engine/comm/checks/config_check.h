// Compares what all ranks must have in common before the first step. Ranks with different programs,
// parameters or data would train the wrong thing or wait forever.
#pragma once

#include <string>
#include <vector>

#include "engine/comm/communicator.h"

namespace paceline {

// One row of the comparison: {"learning_rate", "0.001"}.
struct ConfigRow {
  std::string name, value;
};

// Ranks that have the same rows.
struct ConfigGroup {
  std::vector<int> ranks;
  std::vector<ConfigRow> rows;
};

// Returns if all ranks have the same rows. Else every rank throws mismatch with the rows that
// differ. Collective: one all_gather of 16 bytes; if they differ, the rows of the first few groups.
void check_same_config(Communicator& communicator, const std::vector<ConfigRow>& mine);

// Call before all ranks throw the same error. The first rank that ends takes the others down, so
// each waits until all have read the data that they need. Collective.
void wait_until_all_know(Communicator& communicator) noexcept;

// "learning_rate: ranks 0-2 0.001, rank 3 0.01; data: ranks 0, 1 ...". Only the first few rows;
// long values as hashes. Empty if all ranks agree. A row missing on a rank is shown as "not there",
// an empty value as "none".
std::string differences(const std::vector<ConfigGroup>& groups);

// "rank 3", "ranks 0-2, 5".
std::string rank_ranges(const std::vector<int>& ranks);

}  // namespace paceline

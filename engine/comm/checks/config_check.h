// What all ranks must have in common is compared before it can do harm: ranks of different
// programs, parameters or data would train something else than was asked for, or wait in vain.
#pragma once

#include <string>
#include <vector>

#include "engine/comm/communicator.h"

namespace paceline {

// One row of the comparison, as people read it: {"learning_rate", "0.001"}.
struct ConfigRow {
  std::string name, value;
};

// Ranks that have the same rows.
struct ConfigGroup {
  std::vector<int> ranks;
  std::vector<ConfigRow> rows;
};

// Returns where all ranks have the same rows; else every rank throws mismatch with the rows that
// differ. Collective: one all_gather of 16 bytes; where they differ, the first few groups' rows.
void check_same_config(Communicator& communicator, const std::vector<ConfigRow>& mine);
// The same; returns what each rank says of itself, in rank order, with one all_gather more.
std::vector<std::string> check_same_config(Communicator& communicator,
                                           const std::vector<ConfigRow>& mine,
                                           const std::string& card);

// Before all ranks throw the same: the first that ends takes the others with it, so each waits
// until all have read what they are going to say. Collective.
void wait_until_all_know(Communicator& communicator) noexcept;

// "learning_rate: ranks 0-2 0.001, rank 3 0.01; data: ranks 0, 1 ..."; long values as hashes; the
// first few rows only. Empty where all ranks have the same. A row that a rank lacks is "not there",
// an empty value "none".
std::string differences(const std::vector<ConfigGroup>& groups);

// "rank 3", "ranks 0-2, 5".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace paceline

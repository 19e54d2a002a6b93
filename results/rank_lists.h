// Moves the facts of many ranks from the record to its sidecar.
#pragma once

#include <cstddef>
#include <string>

#include "engine/core/json.h"

namespace paceline {

// Size in bytes, by `size_of`, of the record's lists with one entry per rank. 0 if there are none,
// or so few ranks that the lists stay.
std::size_t size_of_rank_lists(const Json& record, std::size_t (*size_of)(const Json&));

// Replaces the lists by "ranks" (record/ranks.h). Returns them as lines for the sidecar, one JSON
// object per rank.
std::string fold_rank_lists(Json& record);

// The beginning of a rank's line; other lines hold steps.
inline constexpr char kRankLine[] = "{\"facts_of_rank\":";

}  // namespace paceline

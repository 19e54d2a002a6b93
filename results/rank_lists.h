// The facts of many ranks: out of the record, into the file beside it.
#pragma once

#include <cstddef>
#include <string>

#include "engine/core/json.h"

namespace paceline {

// The lists of a record that have an entry for each rank. Their size in bytes by `size_of`; 0 where
// there are none, or so few ranks that they stay.
std::size_t size_of_rank_lists(const Json& record, std::size_t (*size_of)(const Json&));

// Puts "ranks" (record/ranks.h) in their place. Returns them as lines for the sidecar, a JSON
// object a rank.
std::string fold_rank_lists(Json& record);

// What a line of a rank begins with; the others are of its steps.
inline constexpr char kRankLine[] = "{\"facts_of_rank\":";

}  // namespace paceline

// What JSON says of records that a damaged data set has lost.
#pragma once

#include <vector>

#include "engine/core/json.h"
#include "engine/input/source.h"

namespace paceline {

// Adds lost_records, of those whose number is known, and the first few lost_places.
void add_lost_records(Json& json, const std::vector<LostRecords>& lost);

}  // namespace paceline

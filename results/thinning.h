// Long runs of many ranks in a record of bounded size.
#pragma once

#include <cstddef>

#include "engine/core/json.h"

namespace paceline {

// Leaves entries of a record's longest lists out until its text, by `size_of`, has at most `limit`
// bytes or nothing is left to leave out: of epochs and ranks every second one, again and again, the
// last and the slowest rank always kept. `thinned` in the record then says how long each such list
// was, and a row of quality.epochs has its number as `epoch`. Of more than 96 epochs rows are left
// out in any case. Steps of all ranks stay in the sidecar.
void thin(Json& record, std::size_t limit, std::size_t (*size_of)(const Json&));

}  // namespace paceline

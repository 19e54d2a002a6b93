// Bounds the size of records of long runs with many ranks.
#pragma once

#include <cstddef>
#include <string>

#include "engine/core/json.h"

namespace paceline {

// Removes entries from the longest lists until the record, measured with `size_of`, has at most
// `limit` bytes, or nothing more can be removed. Replaces lists over ranks by "ranks"
// (rank_lists.h), and returns them as lines for the sidecar. From other lists it removes every
// second entry, repeatedly, and always keeps the last one. `thinned` in the record has the original
// length of each list, and rows of quality.epochs then have their number as `epoch`. Always thins
// more than 96 epochs.
std::string thin(Json& record, std::size_t limit, std::size_t (*size_of)(const Json&));

}  // namespace paceline

// Long runs of many ranks in a record of bounded size.
#pragma once

#include <cstddef>
#include <string>

#include "engine/core/json.h"

namespace paceline {

// Makes a record's longest lists shorter until its text, by `size_of`, has at most `limit` bytes or
// nothing is left to leave out. Lists over ranks give way to "ranks" (rank_lists.h); they are
// returned as lines for the sidecar. Of other lists every second entry goes, again and again, the
// last always kept. `thinned` in the record then says how long each of those was, and a row of
// quality.epochs has its number as `epoch`. Of more than 96 epochs rows are left out in any case.
std::string thin(Json& record, std::size_t limit, std::size_t (*size_of)(const Json&));

}  // namespace paceline

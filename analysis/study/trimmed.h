// Rows compared by trimmed means, beside contrast(): see statistics/robust.h.
#pragma once

#include "analysis/study/contrast.h"

namespace paceline {

// The trimmed mean of the first quantity of `row` less that of `base`. Paired as contrast() is. The
// error is unknown for tainted rows, for fewer than kFewestTrimmed units, and where the number of
// runs depended on their results.
Difference trimmed_contrast(const RowValues& base, const RowValues& row);

}  // namespace paceline

// Whether the rows of a published table agree with themselves: its time times its rate are the
// samples of a run.
#pragma once

#include <string>

#include "analysis/study/study.h"

namespace paceline {

// "time x rate of 16 GPUs is 2.34 million samples, of the other 4 rows 3.12 to 3.17 million". Of
// rows that give both and differ by more than a tenth from the median of three rows or more. Empty:
// they agree, or there is nothing to compare.
std::string implied_samples_line(const Study& study);

}  // namespace paceline

#pragma once

#include <string>
#include <vector>

#include "analysis/study/row_facts.h"

namespace paceline {

// The finding on rows that trained worse than their base: "2 rows have lower accuracy than their
// base: 32 GPUs (70.10 % beside 75.40 %), ...". Empty: there are none.
std::string lower_quality_line(const Study& study, const std::vector<RowFacts>& facts);

}  // namespace paceline

// What is said of records that a damaged data set has lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/input/formats/source.h"

namespace paceline {

struct LostSummary {
  std::int64_t records = 0;         // of those whose number is known
  std::vector<std::string> places;  // the first few
};

LostSummary summary_of(const std::vector<LostRecords>& lost);

}  // namespace paceline

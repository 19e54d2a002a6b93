// Describes records that are lost in a damaged data set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/input/formats/source.h"

namespace paceline {

struct LostSummary {
  std::int64_t records = 0;         // of places with a known number
  std::vector<std::string> places;  // the first few
};

LostSummary summarize(const std::vector<LostRecords>& lost);

}  // namespace paceline

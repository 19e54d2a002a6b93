// What a record says of where it was made, as texts for people: see provenance.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "results/run_record.h"

namespace paceline {

// Every name that origin_of() may give, in the order of a report.
const std::vector<std::string>& origin_names();

// (name, text) of what the record states.
std::vector<std::pair<std::string, std::string>> origin_of(const RunRecord& record);

}  // namespace paceline

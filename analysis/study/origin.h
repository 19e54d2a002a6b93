// Where and how a record was made, as texts: see provenance.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "results/run_record.h"

namespace paceline {

// All names that summarize_provenance() may return, in report order.
const std::vector<std::string>& origin_names();

// (name, text) pairs of what the record states.
std::vector<std::pair<std::string, std::string>> summarize_provenance(const RunRecord& record);

}  // namespace paceline

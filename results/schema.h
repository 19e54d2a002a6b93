// JSON Schemas of values that readers check: editors complete by them, and others check files.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/json.h"
#include "results/parameters.h"

namespace paceline {

// Values of two keys of a record.
inline constexpr const char* kRecordKinds[] = {"measured", "published", "predicted", "imported",
                                               "collective"};
inline constexpr const char* kRecordStates[] = {"completed", "failed", "timeout", "preempted"};

// What the layout of a measured run states, and whether this one does.
std::vector<std::pair<const char*, bool>> measured_layout(const struct LayoutFacts& layout);

inline constexpr std::int64_t kMostOfAParameter = std::int64_t{1} << 40;

// Of the values that checked_value() takes.
Json parameter_schema(const Parameter& parameter);
// Of the records that parse_run_record() takes.
std::string record_schema();

}  // namespace paceline

// What a record must be before anything is computed from it.
#pragma once

#include <string>

#include "engine/core/json.h"

namespace paceline {

// Throws input naming `where` and the key: a newer schema, a missing or mistyped key, a value that
// is not finite, a negative time or count, a layout of no replicas. Keys it does not know are
// left alone, so that a record may hold more than this build reads.
void check_record(const Json& record, const std::string& where);

}  // namespace paceline

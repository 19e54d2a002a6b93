// The frameworks of the user's Python, for studies of programs (workload command).
#pragma once

#include "engine/core/environment.h"
#include "run/diagnosis.h"

namespace paceline {

// Imports each in the python3 of the PATH, which takes seconds. A framework that is missing or
// cannot be imported is a fact with its reason, not a problem: Paceline needs none.
Section frameworks_here(const Environment& environment);

}  // namespace paceline

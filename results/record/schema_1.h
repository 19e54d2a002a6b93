// Reads records of schema 1.
#pragma once

#include "engine/core/json.h"

namespace paceline {

// Until schema 1, backends `mpi` and `gloo` were Paceline's own sums, and `+flat` made them the
// library's. Gives such a record the name of what ran, which provenance.backend_used says, and sets
// "renamed_backend" to the name in the file. Records of published, imported and users' own programs
// stay as they are: their backends are other programs' words.
void rename_backend_of_schema_1(Json& record);

}  // namespace paceline

// Origin of the numbers (machines, builds, libraries, transports, data), and the command that
// reproduces a row.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "analysis/study/study.h"

namespace paceline {

struct ProvenanceFact {
  std::string name;                                         // "machine", "build", ...
  std::vector<std::pair<std::string, std::size_t>> values;  // each with the number of its runs
};

// In a fixed order; only facts that some record states. The last one is when the first and the last
// run started.
std::vector<ProvenanceFact> provenance(const Study& study);

// "machine: A CPU (18 runs), Another (3 runs)".
std::string format_sentence(const ProvenanceFact& fact);

// A recorded command as a user would type it: without the program's folder and without the paths of
// record, logs and state. Empty unless it is a `paceline train` or `bench`.
std::string typed_command(const std::string& recorded);

// The command that runs the row once more: the recorded one without the paths of record and logs,
// or, without a recorded command, the record's parameters as options. Empty if the row is not a run
// of Paceline.
std::string find_command(const Row& row);

}  // namespace paceline

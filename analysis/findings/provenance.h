// Where the numbers come from: machines, builds, libraries, transports, data; and the command that
// makes a row again.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "analysis/study/study.h"

namespace paceline {

struct ProvenanceFact {
  std::string name;                                         // "machine", "build", ...
  std::vector<std::pair<std::string, std::size_t>> values;  // each with its number of runs
};

// Facts that some record states, in a fixed order; the first and last start of a run as the last.
std::vector<ProvenanceFact> provenance(const Study& study);

// "machine: A CPU (18 runs), Another (3 runs)".
std::string sentence_of(const ProvenanceFact& fact);

// A recorded command as one would type it: the program's name without its folder, and without the
// places of record, logs and state. Empty where it is none of `paceline train` or `bench`.
std::string typed_command(const std::string& recorded);

// What to type for one more run of the row: the recorded command without the places of its record
// and logs, or, where there is none, the parameters of the record as options. Empty where the row
// is no run of this program.
std::string command_of(const Row& row);

}  // namespace paceline

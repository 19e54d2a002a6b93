// The sections of a program's record: what it is, and its numbers.
#pragma once

#include <string>

#include "engine/core/environment.h"
#include "results/run_record.h"
#include "run/diagnosis.h"
#include "run/program_run.h"
#include "sweeps/program.h"

namespace paceline {

// Its folder's commit, the hash of the files that its command names, its Python environment with
// the packages that matter to speed. `seconds` are those from its start to its end.
ProgramFacts program_facts(const UserProgram& program, double seconds);

// Sets the program's precision, too, so after its facts. Without a result of its own, fit_seconds
// is the program's whole time, and the record says so.
void set_results(RunRecord& record, const ProgramReport& report, double seconds);

// Gzipped JSON lines {"rank":0,"step":0,"total":..}; empty: no times of steps.
std::string compressed_steps(const ProgramReport& report);

// The frameworks of the user's Python, for studies of programs (workload command).

// Imports each in the python3 of the PATH, which takes seconds. A framework that is missing or
// cannot be imported is a fact with its reason, not a problem: Paceline needs none.
DiagnosisSection frameworks_here(const Environment& environment);

}  // namespace paceline

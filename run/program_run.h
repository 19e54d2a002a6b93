// One run of somebody's own program (workload command), from its start to its record.
#pragma once

#include <string>
#include <vector>

#include "results/parameters.h"
#include "run/training_run.h"
#include "sweeps/program.h"

namespace paceline {

struct ProgramRequest {
  UserProgram program;
  Point parameters;  // resolved
  Layout layout;
  RecordTarget target;
  std::vector<std::string> command;  // ours, as typed, which each of its processes is started by
};

// Starts the program's processes, bound to the CPUs and GPUs of the point, waits for all that they
// start, and writes the record. A process that it started becomes the program here. Returns 0 or
// throws: the program cannot be started, ended with an error, left no results.
int run_program(const ProgramRequest& request);

}  // namespace paceline

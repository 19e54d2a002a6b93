// Shared parts of records of runs and of collectives.
#pragma once

#include <string>
#include <vector>

#include "engine/launch/threads.h"
#include "results/run_record.h"
#include "run/training_run.h"

namespace paceline {

// The first part of every record of a run, schema to identity. Status is "completed".
RunRecord record_beginning(const RecordTarget& target, const std::string& workload,
                           const Point& parameters);

LayoutFacts layout_facts(const Layout& layout, const ThreadPlan& threads);

// Version, commit, compiler and command; Slurm's allocation, and the loaded modules.
Provenance build_facts(const std::vector<std::string>& command);

}  // namespace paceline

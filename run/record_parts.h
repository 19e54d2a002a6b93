// Shared parts of records of runs and of collectives.
#pragma once

#include <string>
#include <vector>

#include "engine/launch/threads.h"
#include "results/run_record.h"

namespace paceline {

LayoutFacts layout_facts(const Layout& layout, const ThreadPlan& threads);

// Version, commit, compiler and command; Slurm's allocation, and the loaded modules.
Provenance build_facts(const std::vector<std::string>& command);

}  // namespace paceline

// What records of runs and of collectives have in common.
#pragma once

#include <string>
#include <vector>

#include "engine/launch/threads.h"
#include "results/run_record.h"

namespace paceline {

LayoutFacts layout_facts(const Layout& layout, const ThreadPlan& threads);

// Version, commit, compiler and command; what Slurm really gave, and the modules loaded.
Provenance build_facts(const std::vector<std::string>& command);

}  // namespace paceline

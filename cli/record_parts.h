// What records of runs and of collectives have in common.
#pragma once

#include <string>
#include <vector>

#include "engine/core/json.h"
#include "engine/launch/threads.h"
#include "results/layout.h"
#include "results/parameters.h"

namespace paceline {

double round_digits(double value);  // to 7 significant ones: more would be noise
Json values_json(const Point& parameters);
Json layout_json(const Layout& layout, const ThreadPlan& threads);
// Version, commit, compiler and command.
Json build_json(const std::vector<std::string>& command);

}  // namespace paceline

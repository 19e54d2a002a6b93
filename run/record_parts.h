// What records of runs and of collectives have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/core/environment.h"
#include "engine/core/json.h"
#include "engine/launch/threads.h"
#include "results/layout.h"
#include "results/parameters.h"

namespace paceline {

double round_digits(double value);  // to 7 significant ones: more would be noise
// Null where nothing is known; reals are rounded.
using KnownValue = std::variant<bool, int, std::int64_t, double, std::string>;
void put_known(Json& json, const char* key, const std::optional<KnownValue>& value);
Json values_json(const Point& parameters);
Json layout_json(const Layout& layout, const ThreadPlan& threads);
// What Slurm really gave, and the modules loaded; null outside of a job.
Json allocation_json(const Environment& environment);
// Version, commit, compiler, command and allocation.
Json build_json(const std::vector<std::string>& command);

}  // namespace paceline

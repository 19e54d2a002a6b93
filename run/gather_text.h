// Texts of all ranks.
#pragma once

#include <string>
#include <vector>

#include "run/world.h"

namespace paceline {

// JSON texts in rank order, from one for each replica of this process. A text longer than `most`
// bytes becomes "{}". The same on every rank. Collective.
std::vector<std::string> gather_texts(World& world, const std::vector<std::string>& mine,
                                      std::size_t most);

}  // namespace paceline

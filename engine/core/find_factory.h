// The row of a table of what was built, by name.
#pragma once

#include <string_view>
#include <vector>

#include "engine/core/support.h"

namespace paceline {

// Null: there is none of that name.
template <typename Function>
const Factory<Function>* find_factory(const std::vector<Factory<Function>>& table,
                                      std::string_view name) {
  for (const auto& row : table) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace paceline

// Finds the row of a factory table by name.
#pragma once

#include <string_view>
#include <vector>

#include "engine/core/support.h"

namespace paceline {

// Null if there is none.
template <typename Function>
const Factory<Function>* find_factory(const std::vector<Factory<Function>>& table,
                                      std::string_view name) {
  for (const auto& row : table) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace paceline

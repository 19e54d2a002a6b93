// One colour for each part of a run, in every picture that shows it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace paceline {

// An index into the palette, by the part's name in a breakdown or in an explanation. What no part
// causes is grey.
constexpr std::size_t part_colour(std::string_view part) {
  constexpr std::size_t kGrey = 6;
  constexpr std::array<std::pair<std::string_view, std::size_t>, 13> kColours = {
      {{"forward", 0},
       {"compute", 0},
       {"communication (exposed)", 1},
       {"communication", 1},
       {"backward", 2},
       {"update", 3},
       {"communication or straggler", 7},
       {"waiting for input", 4},
       {"input", 4},
       {"other", 5},
       {"launch", 5},
       {"straggler", 8},
       {"outside of steps", 9}}};
  for (const auto& [name, colour] : kColours) {
    if (name == part) return colour;
  }
  return kGrey;
}

}  // namespace paceline

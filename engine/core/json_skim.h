// A JSON object of which only some members are wanted: the others are passed over and not parsed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct Wanted {
  std::string_view key;
  std::vector<Wanted> members = {};  // of the object that it is; none: the whole value
};

// The text of the object with these members alone. What is passed over is not checked. Empty: it is
// no object, or one that ends early; parse the whole text to learn why.
std::string skimmed(std::string_view text, const std::vector<Wanted>& wanted);

}  // namespace paceline

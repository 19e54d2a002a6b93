// Extracts some members of a JSON object without parsing the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct Wanted {
  std::string_view key;
  std::vector<Wanted> members = {};  // if the value is an object; empty: the whole value
};

// The text of the object with only these members. Does not validate the others. Empty if `text` is
// not an object or is cut short; parse the whole text for the reason.
std::string skimmed(std::string_view text, const std::vector<Wanted>& wanted);

}  // namespace paceline

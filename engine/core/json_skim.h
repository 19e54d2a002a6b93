// Extracts some members of a JSON object without parsing the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct FieldFilter {
  std::string_view key;
  std::vector<FieldFilter> members = {};  // if the value is an object; empty: the whole value
};

// The text of the object with only these members. Does not validate the others. Empty if `text` is
// not an object or is cut short; parse the whole text for the reason.
std::string extract_fields(std::string_view text, const std::vector<FieldFilter>& wanted);

}  // namespace paceline

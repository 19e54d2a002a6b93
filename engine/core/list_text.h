// Short text for long lists, for messages, and back.
#pragma once

#include <string>
#include <vector>

namespace paceline {

// "n1, n2"; if there are more than eight, the first eight "and 504 more".
std::string names_text(const std::vector<std::string>& names);

// "2, 3, 5" from sorted numbers; if there are more than eight, their ranges: "0-97, 99".
std::string numbers_text(const std::vector<int>& numbers);

// The numbers of such ranges, as the kernel writes lists of CPUs. Skips what is no number.
std::vector<int> parse_numbers(const std::string& ranges);

}  // namespace paceline

// Lists in messages, which stay short however many entries there are.
#pragma once

#include <string>
#include <vector>

namespace paceline {

// "n1, n2"; of more than eight the first eight "and 504 more".
std::string names_text(const std::vector<std::string>& names);

// "2, 3, 5" of numbers in order; of more than eight their ranges, "0-97, 99".
std::string numbers_text(const std::vector<int>& numbers);

}  // namespace paceline

// Of what a program printed before it ended, the line that says most of why.
#pragma once

#include <string_view>

namespace paceline {

// Its last line, or, where a launcher wrote that, Python's last error before, or else the last line
// with words. At most 300 characters.
struct FailureLine {
  std::string_view text;
  bool is_last = true;  // false: an error
};
FailureLine find_failure_line(std::string_view output);

}  // namespace paceline

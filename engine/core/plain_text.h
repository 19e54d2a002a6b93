// Text that may stand on one line anywhere: in a record, a script's comment, a terminal.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// What is wrong with `text`, as "has a control character (U+000A)" or "is not UTF-8"; empty: it is
// UTF-8 without control characters (C0, DEL, C1).
std::string fault_of_text(std::string_view text);

}  // namespace paceline

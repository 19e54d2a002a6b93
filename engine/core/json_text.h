// JSON as text, whatever its strings hold.
#pragma once

#include <string>

#include "engine/core/json.h"

namespace paceline {

// Bytes of strings that are not UTF-8 become U+FFFD; control characters are escaped, also those
// that JSON would let through (DEL, C1, directions of writing), so the text may go to a terminal.
// `indent` as of nlohmann's dump: negative for one line.
std::string json_text(const Json& json, int indent = -1);

}  // namespace paceline

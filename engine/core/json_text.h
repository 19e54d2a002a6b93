// Serializes JSON safely, whatever the strings contain.
#pragma once

#include <optional>
#include <string>

#include "engine/core/json.h"

namespace paceline {

// Replaces bytes that are not UTF-8 with U+FFFD. Escapes all control characters, including those
// that JSON permits (DEL, C1, text direction), so the text is safe for terminals. `indent` as for
// nlohmann's dump: negative for one line.
std::string json_text(const Json& json, int indent = -1);

Json number_or_null(const std::optional<double>& value);

}  // namespace paceline

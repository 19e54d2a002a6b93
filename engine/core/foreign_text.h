// Texts that other programs wrote: their encoding, and JSON whose memory is bounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/core/json.h"

namespace paceline {

// Throw input naming the file `name`, and the line, if its text is of another encoding: there,
// names that differ could become the same.
void refuse_utf16(std::string_view text, const std::string& name);
void require_utf8(std::string_view text, const std::string& name);

// Deeper ones would take memory out of proportion to their text.
inline constexpr std::size_t kMostJsonDepth = 100;

// The value; a discarded one where the text is not JSON, or is too deep.
Json parse_json(std::string_view text);

}  // namespace paceline

#include "engine/core/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/core/utf8.h"

namespace paceline {

std::string json_text(const Json& json, int indent) {
  const std::string dumped = json.dump(indent, ' ', false, Json::error_handler_t::replace);
  std::string text;
  text.reserve(dumped.size());
  for (std::size_t at = 0; at < dumped.size();) {
    const Character character = character_at(dumped, at);
    // What is left of them stands within strings; line breaks are the indentation's.
    if (is_control(character.code) && dumped[at] != '\n') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(character.code));
    } else {
      text.append(dumped, at, character.bytes);
    }
    at += character.bytes;
  }
  return text;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace paceline

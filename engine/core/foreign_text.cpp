#include "engine/core/foreign_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/utf8.h"

namespace paceline {

void refuse_utf16(std::string_view text, const std::string& name) {
  if (text.size() < 2) return;
  const bool marked = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (marked || (text[0] == '\0') != (text[1] == '\0')) {
    throw Error(ErrorKind::input, "the file is UTF-16, or not text", name, "save it as UTF-8");
  }
}

void require_utf8(std::string_view text, const std::string& name) {
  refuse_utf16(text, name);
  std::size_t at = 0;
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) break;
    at += character.bytes;
  }
  if (at >= text.size()) return;
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw Error(ErrorKind::input,
              fmt::format("the text is not UTF-8 (byte 0x{:02X})",
                          static_cast<unsigned>(static_cast<unsigned char>(text[at]))),
              fmt::format("{}:{}", name, line),
              "save it as UTF-8, as by: iconv -f WINDOWS-1252 -t UTF-8");
}

Json parse_json(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
    } else if (c == '[' || c == '{') {
      if (++depth > kMostJsonDepth) return Json(Json::value_t::discarded);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return Json::parse(text, nullptr, false);
}

}  // namespace paceline

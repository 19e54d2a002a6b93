#include "engine/core/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace paceline {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// How many bytes the first one announces, and the bits of the code that it holds.
Character begun_by(unsigned char first) {
  if (first < 0x80) return {first, 1};
  if (first >= 0xc2 && first < 0xe0) return {first & 0x1fU, 2};
  if (first >= 0xe0 && first < 0xf0) return {first & 0x0fU, 3};
  if (first >= 0xf0 && first < 0xf5) return {first & 0x07U, 4};
  return {};
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  Character character = begun_by(static_cast<unsigned char>(text[at]));
  if (at + character.bytes > text.size()) return {};
  for (std::size_t i = 1; i < character.bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next >> 6) != 2) return {};
    character.code = (character.code << 6) | (next & 0x3fU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = character.code >= 0xd800 && character.code < 0xe000;
  if (character.code < kLeast[character.bytes] || is_surrogate || character.code > 0x10ffff) {
    return {};
  }
  return character;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) return false;
    at += character.bytes;
  }
  return true;
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfffe || code == 0xffff;
}

std::string fault_of_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) return "is not UTF-8";
    if (is_control(character.code)) {
      return fmt::format("has a control character (U+{:04X})",
                         static_cast<std::uint32_t>(character.code));
    }
    at += character.bytes;
  }
  return "";
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) {
      result += kReplacement;
      ++at;
      continue;
    }
    const bool is_kept = character.bytes == 1 && kept.find(text[at]) != std::string_view::npos;
    if (is_control(character.code) && !is_kept) {
      result += ' ';
    } else {
      result += text.substr(at, character.bytes);
    }
    at += character.bytes;
  }
  return result;
}

}  // namespace paceline

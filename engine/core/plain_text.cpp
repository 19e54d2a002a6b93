#include "engine/core/plain_text.h"

#include <fmt/format.h>

#include <cstdint>

namespace paceline {

namespace {

constexpr std::uint32_t kNoCharacter = 0xFFFFFFFF;

// The character at the beginning of `text`, which it takes away. As RFC 3629 has it: the shortest
// form, no surrogates, nothing above U+10FFFF.
std::uint32_t take_character(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80             ? 1
                             : first >> 5 == 0b110    ? 2
                             : first >> 4 == 0b1110   ? 3
                             : first >> 3 == 0b1'1110 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return kNoCharacter;
  std::uint32_t character = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 0b10) return kNoCharacter;
    character = character << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < kLeast[length] || character > 0x10FFFF || surrogate) return kNoCharacter;
  text.remove_prefix(length);
  return character;
}

}  // namespace

std::string fault_of_text(std::string_view text) {
  while (!text.empty()) {
    const std::uint32_t character = take_character(text);
    if (character == kNoCharacter) return "is not UTF-8";
    if (character < 0x20 || (character >= 0x7F && character <= 0x9F)) {
      return fmt::format("has a control character (U+{:04X})", character);
    }
  }
  return "";
}

}  // namespace paceline

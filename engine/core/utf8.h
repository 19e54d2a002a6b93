// Text from anywhere: is it UTF-8, and what of it may reach a terminal?
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: the byte there begins no character of UTF-8
};

Character character_at(std::string_view text, std::size_t at);
bool is_utf8(std::string_view text);

// Whether a terminal or an editor acts on it instead of showing it: the control characters C0, DEL
// and C1 (U+009B begins a command as ESC [ does), and what turns the direction of writing.
bool is_control(char32_t code);

// What is wrong with `text` that stands on one line, as "has a control character (U+000A)" or "is
// not UTF-8"; empty: nothing.
std::string fault_of_text(std::string_view text);

// With a space for each control character, but those in `kept`, and U+FFFD for each byte that is
// not UTF-8.
std::string printable(std::string_view text, std::string_view kept = {});

}  // namespace paceline

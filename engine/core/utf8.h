// Checks UTF-8, and makes text safe for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8 character starts here
};

Character character_at(std::string_view text, std::size_t at);
bool is_utf8(std::string_view text);

// Whether a terminal or editor interprets it instead of showing it: the control characters C0, DEL
// and C1 (U+009B starts a command, as ESC [ does), and characters that change the text direction.
bool is_control(char32_t code);

// Why `text` is not a valid line: "has a control character (U+000A)", "is not UTF-8". Empty: it is
// valid.
std::string fault_of_text(std::string_view text);

// Replaces control characters, except those in `kept`, with spaces, and bytes that are not UTF-8
// with U+FFFD.
std::string printable(std::string_view text, std::string_view kept = {});

}  // namespace paceline

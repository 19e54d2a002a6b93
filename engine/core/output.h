// All that the program prints goes through here: names from files must not steer a terminal.
//
// Control characters become spaces, but for line breaks and tabs; bold and plain are left in where
// colours are welcome. JSON documents (json_text.h) have none and come through as they are.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

namespace paceline {

inline constexpr char kBold[] = "\x1b[1m";
inline constexpr char kPlain[] = "\x1b[0m";

// To standard output. Throws input where it cannot be written: a table that a full disk swallowed
// is no success.
void print_text(std::string_view text);
void flush_output();

template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// To standard error; what cannot be written there is lost.
void print_note_text(std::string_view text);

template <typename... Arguments>
void print_note(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_note_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The line on standard error, a terminal, that the next one is written over.
void print_moving_line(std::string_view line);
void clear_moving_line();

// Standard output for what writes to a stream; passes on at each flush and at its end.
class OutputStream : public std::ostream {
 public:
  OutputStream() : std::ostream(&buffer_) {}
  ~OutputStream() override;
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

 private:
  class Buffer : public std::stringbuf {
    int sync() override;
  };
  Buffer buffer_;
};

}  // namespace paceline

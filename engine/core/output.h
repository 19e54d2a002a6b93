// All program output. Makes text safe for terminals: file names must not control them.
//
// Replaces control characters with spaces, except line breaks and tabs. Keeps bold and plain
// sequences if colours are enabled. JSON documents (json_text.h) contain no control characters and
// pass unchanged.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

namespace paceline {

inline constexpr char kBold[] = "\x1b[1m";
inline constexpr char kPlain[] = "\x1b[0m";

// Prints to standard output. Throws input if that fails, so that a full disk is not mistaken for
// success.
void print_text(std::string_view text);
void flush_output();

template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Prints to standard error. Ignores errors.
void print_note_text(std::string_view text);

template <typename... Arguments>
void print_note(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_note_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Prints a line to standard error (a terminal) that the next one overwrites.
void print_moving_line(std::string_view line);
void clear_moving_line();

// Standard output as a stream. Flushes to print_text().
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

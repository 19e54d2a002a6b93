// All program output. Makes text safe for terminals: file names must not control them.
//
// Replaces control characters with spaces, except line breaks and tabs. Keeps bold and plain
// sequences if colours are enabled. JSON documents (json.h) contain no control characters and
// pass unchanged.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <ostream>
#include <sstream>
#include <string>
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

// Whether a stream supports colours and progress lines.

// True for a terminal, unless NO_COLOR is set or TERM is "dumb".
bool colours_welcome(int file_descriptor);
bool is_terminal(int file_descriptor);
// Whether somebody can answer on standard input; a dumb terminal will do.
bool can_ask();
// The width for tables: the terminal's, or $COLUMNS; else 0: pipes and job logs get all.
std::size_t columns_of_output(int file_descriptor);

// Lines on standard error. On a terminal, the current state is a line that the next one overwrites.
class Screen {
 public:
  Screen();
  void line(const std::string& text);
  void status(const std::string& text);
  void clear();

 private:
  bool moving_;
  bool shown_ = false;
};

}  // namespace paceline

#include "engine/core/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kLinesAndTabs[] = "\n\t";
constexpr char kEraseToEnd[] = "\x1b[K";

// Bold and plain are our own, and no harm if they are not.
std::string with_styles(std::string_view text) {
  std::string shown;
  while (true) {
    const std::size_t at = std::min(text.find(kBold), text.find(kPlain));
    shown += printable(text.substr(0, at), kLinesAndTabs);
    if (at == std::string_view::npos) return shown;
    constexpr std::size_t kLength = sizeof kBold - 1;
    static_assert(sizeof kBold == sizeof kPlain);
    shown += text.substr(at, kLength);
    text.remove_prefix(at + kLength);
  }
}

[[noreturn]] void refuse_output() {
  throw input_error("standard output could not be written", "",
                    "free disk space, or redirect the output");
}

void put(std::FILE* stream, std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stream);
}

// 0 if it is not a terminal or its width is unknown.
std::size_t terminal_columns(int file_descriptor) {
  winsize size{};
  const bool known = is_terminal(file_descriptor) && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0;
  return known ? size.ws_col : 0;
}

// A line that wraps cannot be written over.
std::size_t columns() {
  const std::size_t known = terminal_columns(STDERR_FILENO);
  return known > 1 ? known : 80;
}

}  // namespace

void print_text(std::string_view text) {
  put(stdout, colours_welcome(STDOUT_FILENO) ? with_styles(text) : printable(text, kLinesAndTabs));
  if (std::ferror(stdout)) refuse_output();
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) refuse_output();
}

void print_note_text(std::string_view text) {
  put(stderr, printable(text, kLinesAndTabs));
}

void print_moving_line(std::string_view line) {
  put(stderr, "\r" + printable(line) + kEraseToEnd);
  std::fflush(stderr);
}

void clear_moving_line() {
  put(stderr, std::string("\r") + kEraseToEnd);
}

OutputStream::~OutputStream() {
  try {
    flush();
  } catch (const std::exception&) {
    // The stream's own state says so; the program finds out at its end.
  }
}

int OutputStream::Buffer::sync() {
  print_text(str());
  str("");
  flush_output();
  return 0;
}

bool can_ask() {
  return isatty(STDIN_FILENO) == 1;
}

bool is_terminal(int file_descriptor) {
  const char* term = std::getenv("TERM");
  return isatty(file_descriptor) && term && std::string_view(term) != "dumb";
}

std::size_t columns_of_output(int file_descriptor) {
  constexpr std::size_t kFewest = 20;
  if (const std::size_t columns = terminal_columns(file_descriptor); columns > 0) return columns;
  const char* said = std::getenv("COLUMNS");
  const auto columns = to_integer(said ? said : "");
  return columns && *columns > 0 ? std::max(kFewest, static_cast<std::size_t>(*columns)) : 0;
}

bool colours_welcome(int file_descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(file_descriptor) && !(no_color && *no_color);
}

Screen::Screen() : moving_(is_terminal(STDERR_FILENO)) {}

void Screen::line(const std::string& text) {
  clear();
  print_note("{}\n", text);
}

void Screen::status(const std::string& text) {
  if (!moving_) return;
  clear();
  print_moving_line(text.substr(0, columns() - 1));
  shown_ = true;
}

void Screen::clear() {
  if (shown_) clear_moving_line();
  shown_ = false;
}

}  // namespace paceline

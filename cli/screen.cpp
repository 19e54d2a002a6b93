#include "cli/screen.h"

#include <fmt/format.h>
#include <unistd.h>

namespace paceline {

namespace {

// A line that wraps cannot be written over.
std::size_t columns() {
  const std::size_t known = terminal_columns(STDERR_FILENO);
  return known > 1 ? known : 80;
}

}  // namespace

Screen::Screen() : moving_(is_terminal(STDERR_FILENO)) {}

void Screen::line(const std::string& text) {
  clear();
  fmt::print(stderr, "{}\n", text);
}

void Screen::status(const std::string& text) {
  if (!moving_) return;
  clear();
  fmt::print(stderr, "{}", text.substr(0, columns() - 1));
  std::fflush(stderr);
  shown_ = true;
}

void Screen::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace paceline

#include "run/screen.h"

#include <fmt/format.h>
#include <unistd.h>

#include "engine/core/output.h"

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

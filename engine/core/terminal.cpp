#include "engine/core/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/core/text.h"

namespace paceline {

bool can_ask() {
  return isatty(STDIN_FILENO) == 1;
}

bool is_terminal(int file_descriptor) {
  const char* term = std::getenv("TERM");
  return isatty(file_descriptor) && term && std::string_view(term) != "dumb";
}

std::size_t terminal_columns(int file_descriptor) {
  winsize size{};
  const bool known = is_terminal(file_descriptor) && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0;
  return known ? size.ws_col : 0;
}

std::size_t columns_of_output(int file_descriptor) {
  constexpr std::size_t kOfALog = 80, kFewest = 20;
  if (const std::size_t columns = terminal_columns(file_descriptor); columns > 0) return columns;
  const char* said = std::getenv("COLUMNS");
  const auto columns = to_integer(said ? said : "");
  return columns && *columns > 0 ? std::max(kFewest, static_cast<std::size_t>(*columns)) : kOfALog;
}

bool colours_welcome(int file_descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(file_descriptor) && !(no_color && *no_color);
}

}  // namespace paceline

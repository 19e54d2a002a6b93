#include "engine/core/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace paceline {

bool is_terminal(int file_descriptor) {
  const char* term = std::getenv("TERM");
  return isatty(file_descriptor) && term && std::string_view(term) != "dumb";
}

std::size_t terminal_columns(int file_descriptor) {
  winsize size{};
  const bool known = is_terminal(file_descriptor) && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0;
  return known ? size.ws_col : 0;
}

bool colours_welcome(int file_descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(file_descriptor) && !(no_color && *no_color);
}

}  // namespace paceline

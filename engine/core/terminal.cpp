#include "engine/core/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace paceline {

bool is_terminal(int file_descriptor) {
  const char* term = std::getenv("TERM");
  return isatty(file_descriptor) && term && std::string_view(term) != "dumb";
}

bool colours_welcome(int file_descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(file_descriptor) && !(no_color && *no_color);
}

}  // namespace paceline

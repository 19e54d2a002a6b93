// Prints lines to standard error. On a terminal, the current state is a line that the next one
// overwrites.
#pragma once

#include <string>

#include "engine/core/output.h"

namespace paceline {

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

// Lines to standard error; on a terminal the current state is one line that is written over.
#pragma once

#include <string>

#include "engine/core/terminal.h"

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

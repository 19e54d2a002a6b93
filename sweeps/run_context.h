// What a study says of one of its runs to the program that makes it: the hidden --context of train.
#pragma once

#include <string>

namespace paceline {

struct RunContext {
  std::string study, point, point_folder, session;
  int repeat = 1, round = 1;

  std::string json() const;
};

// Throws input where it is no JSON, usage where something is missing.
RunContext parse_run_context(const std::string& text);

}  // namespace paceline

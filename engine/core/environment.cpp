#include "engine/core/environment.h"

#include <unistd.h>

namespace paceline {

Environment environment_of_process() {
  Environment environment;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    if (const auto equals = text.find('='); equals != std::string::npos) {
      environment[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return environment;
}

}  // namespace paceline

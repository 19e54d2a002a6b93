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

std::string value_of(const Environment& environment, const std::string& name) {
  const auto entry = environment.find(name);
  return entry == environment.end() ? "" : entry->second;
}

}  // namespace paceline

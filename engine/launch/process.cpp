#include "engine/launch/process.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace paceline {

ProcessState state_of_process(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // "4711 (name, which may hold anything) S 1 ..."
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return ProcessState::none;
  switch (line[name_end + 2]) {
    case 'Z':
    case 'X':
      return ProcessState::none;
    case 'T':
    case 't':
      return ProcessState::stopped;
    default:
      return ProcessState::alive;
  }
}

}  // namespace paceline

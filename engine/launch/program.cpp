#include "engine/launch/program.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace paceline {

std::filesystem::path this_program() {
  auto file = program_file();
  if (!file.empty()) return file;
  throw usage_error("this program's own file was not found", "/proc/self/exe",
                    "mount /proc, or start the ranks with mpirun yourself");
}

std::string capture_output(const std::vector<std::string>& command, double seconds) {
  constexpr std::size_t kMost = 64 << 10;
  std::string output;
  try {
    Child child({command, environment_of_process(), true});
    const double end = now_seconds() + seconds;
    std::array<char, 4096> buffer;
    while (output.size() < kMost) {
      const double left = end - now_seconds();
      pollfd entry{child.pipe(), POLLIN, 0};
      if (left <= 0 || poll(&entry, 1, static_cast<int>(left * 1000) + 1) <= 0) return "";
      const ssize_t got = read(child.pipe(), buffer.data(), buffer.size());
      if (got <= 0) break;
      output.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return output;
  } catch (const Error&) {
    return "";
  }
}

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

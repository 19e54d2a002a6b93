#include "run/failure_line.h"

#include <algorithm>
#include <cctype>

#include "engine/core/text.h"

namespace paceline {

namespace {

// "ValueError: ...", "torch.OutOfMemoryError: ..."; torchrun's own error is none.
bool is_python_error(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  const bool is_name = std::ranges::all_of(
      name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
  return is_name && !name.ends_with("ChildFailedError") &&
         (name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Interrupt"));
}

// "Signal 9 (SIGKILL) received by PID 7", "exited on signal 9 (Killed)", "task 1: Killed"
bool names_signal(std::string_view line) {
  return line.find("(SIG") != line.npos || line.find("Killed") != line.npos;
}

// Without "[rank1]: ", or "1: " of srun -l.
std::string_view without_rank(std::string_view line) {
  const std::size_t begin = line.starts_with("[rank") ? 5 : 0;
  const std::size_t end = std::min(line.find_first_not_of("0123456789", begin), line.size());
  const std::string_view rest = line.substr(end);
  const std::string_view mark = begin > 0 ? "]: " : ": ";
  return end > begin && rest.starts_with(mark) ? rest.substr(mark.size()) : line;
}

// What launchers put behind a rank's own words: rulers, and srun's "task 1: Exited ...".
bool is_of_launcher(std::string_view line) {
  return line.starts_with("srun: ") ||
         std::ranges::none_of(line, [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace

FailureLine find_failure_line(std::string_view output) {
  constexpr std::size_t kMost = 300;
  const std::string_view all = trim(output);
  std::string_view last;
  for (std::string_view left = all; !left.empty();) {
    const std::size_t begin = left.find_last_of("\r\n") + 1;  // npos + 1 is 0
    const std::string_view line = trim(left.substr(begin));
    left = left.substr(0, begin == 0 ? 0 : begin - 1);
    if (last.empty() && !is_of_launcher(line)) last = line.substr(0, kMost);
    const bool is_end = line.data() + line.size() == all.data() + all.size();
    if ((is_end && !last.empty()) || names_signal(line)) return {line.substr(0, kMost)};
    const std::string_view own = without_rank(line);
    if (is_python_error(own)) return {own.substr(0, kMost), false};
  }
  return {last};
}

}  // namespace paceline

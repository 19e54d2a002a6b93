// Whether this machine permits what a test needs: namespaces, mounts, limits. Containers refuse
// some.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace paceline {

// Empty where the shell runs `command` without an error; else the last line that it printed, or its
// exit status. A test then skips with this text.
inline std::string why_not(const std::string& command) {
  FILE* pipe = popen(("( " + command + " ) 2>&1").c_str(), "r");
  if (pipe == nullptr) return "no shell";
  std::string last;
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) last = line;
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  while (!last.empty() && last.back() == '\n') last.pop_back();
  return last.empty() ? "exit status " + std::to_string(WEXITSTATUS(status)) : last;
}

}  // namespace paceline

// Runs a program to its end, without a shell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

struct ChildEnd {
  bool found = true;     // false: no such program on PATH
  bool in_time = true;   // false: it was killed at the deadline
  int code = 0;          // exit code, or 128 + signal
  std::string messages;  // what it wrote to standard error, at most 4 KB
};

// `words[0]` is looked up on PATH. Standard input is empty, standard output goes to a new file.
ChildEnd run_child(const std::vector<std::string>& words, double deadline_seconds,
                   const std::filesystem::path& output = "/dev/null");

}  // namespace paceline

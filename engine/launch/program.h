// Other programs on this machine: where one is, and what it says of itself.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/launch/process_rank.h"

namespace paceline {

// The first executable file of that name in PATH.
std::optional<std::filesystem::path> find_program(const std::string& name,
                                                  const Environment& environment);

// This program's own file.
std::filesystem::path this_program();

// Runs it to its end and returns standard output and error together, at most 64 KB; empty if it
// could not be started or did not end within `seconds` (it is killed then).
std::string output_of(const std::vector<std::string>& command, double seconds = 10);

// Whether a process of this machine lives.
enum class ProcessState { none, stopped, alive };

// A zombie is none: it has ended, and only waits for its parent to ask how. stopped: by SIGSTOP, a
// terminal or a debugger. By /proc.
ProcessState state_of_process(int pid);

}  // namespace paceline

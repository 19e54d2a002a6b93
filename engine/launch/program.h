// Finds and runs other programs on this machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/environment.h"

namespace paceline {

// The path of this program's executable.
std::filesystem::path this_program();

// Runs a command to its end. Returns standard output and error together, at most 64 KB. Empty if it
// could not be started, or took longer than `seconds` (it is then killed).
std::string capture_output(const std::vector<std::string>& command, double seconds = 10);

// Whether a process of this machine is alive.
enum class ProcessState { none, stopped, alive };

// Zombies are none: they have ended. stopped: by SIGSTOP, a terminal or a debugger. Uses /proc.
ProcessState state_of_process(int pid);

}  // namespace paceline

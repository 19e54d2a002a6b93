// A process of a user's program (workload command): its CPUs, GPUs, variables and words.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "run/program_run.h"

namespace paceline {

// Which part of a program the process becomes: "setup" or "run". Set by the process that starts it.
inline constexpr char kPartVariable[] = "PACELINE_PROGRAM_PART";

LaunchSpec make_launch_spec(const ProgramRequest& request);
bool has_ranks(const UserProgram& program);
std::filesystem::path folder_of_run(const ProgramRequest& request);  // placeholder {out}

// Holds now_seconds() of the moment before its first process became the program.
std::filesystem::path start_file(const ProgramRequest& request);

// What a run's placeholders stand for, except those that differ by process or are told to it.
// Empty: no value.
std::optional<std::string> value_in_run(const std::string& name, const ProgramRequest& request);

// The process becomes that part of the program. Throws if it cannot be started.
[[noreturn]] void become_program(const ProgramRequest& request, const std::string& part);

}  // namespace paceline

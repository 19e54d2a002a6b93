// A process of a user's program (workload command): its CPUs, GPUs, variables and words.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/input/cache/cache_area.h"
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

// What a program prints, kept until it has ended. To search it is dear, and would slow the program
// down, which waits as long as nobody reads.

class PrintedOutput {
 public:
  // Up to 32 MB are in memory, more in a file in `folder` that nobody else sees.
  explicit PrintedOutput(std::filesystem::path folder);
  ~PrintedOutput();
  PrintedOutput(const PrintedOutput&) = delete;
  PrintedOutput& operator=(const PrintedOutput&) = delete;

  // Never fails, as the program runs.
  void add(std::string_view text) noexcept;
  // All of it, after the last add(). Throws input if there was no room for it.
  std::string_view text();

 private:
  bool spill(std::string_view text);

  std::filesystem::path folder_;
  std::string memory_;
  std::unique_ptr<UnlinkedFile> file_;
  std::size_t bytes_ = 0;
  bool is_lost_ = false;
  void* mapped_ = nullptr;
};

}  // namespace paceline

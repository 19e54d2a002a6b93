// What a program prints, kept until it has ended. To search it is dear, and would slow the program
// down, which waits as long as nobody reads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "engine/input/cache/nameless_file.h"

namespace paceline {

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

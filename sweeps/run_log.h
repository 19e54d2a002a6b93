// The log of one run: everything in a file, and its last line for people.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace paceline {

class RunLog {
 public:
  explicit RunLog(std::filesystem::path file);  // replaces an older file

  void append(std::string_view text);
  std::string last_line() const;  // without "paceline: "; may be empty
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::ofstream stream_;  // write errors are ignored
  std::string tail_;
};

}  // namespace paceline

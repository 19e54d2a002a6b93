// What one run says: all of it in a file, its last line for people.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace paceline {

class RunLog {
 public:
  explicit RunLog(std::filesystem::path file);  // an older one of that name is replaced

  void hear(std::string_view text);
  std::string last_line() const;  // without "paceline: "; empty if it said nothing
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::ofstream stream_;  // a log that cannot be written is no reason to stop
  std::string tail_;
};

}  // namespace paceline

// An output file with a user-given name. It never replaces a file of another kind, so that a typo
// on the command line destroys no data.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace paceline {

class OutputFile {
 public:
  using IsOurs = std::function<bool(std::string_view content)>;

  // `option` is the user's option; `kind` completes "and is not a trace". An existing file may be
  // replaced if it is empty or `is_ours` returns true. Without `is_ours` it may never be replaced.
  OutputFile(std::filesystem::path file, std::string option, std::string kind, IsOurs is_ours = {});

  // Call before the work. Throws input if another file exists.
  void check_name() const;
  // The same, and checks that the file can be written.
  void check() const;

  // Writes atomically. Checks the existing file again.
  void write(std::string_view content) const;

 private:
  bool may_replace() const;

  std::filesystem::path file_;
  std::string option_, kind_;
  IsOurs is_ours_;
};

}  // namespace paceline

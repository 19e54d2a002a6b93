// A file whose name a user gives for something that we write. It never replaces what is not of its
// own kind: a slip in a command line costs no data.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace paceline {

class OutputFile {
 public:
  using IsOurs = std::function<bool(std::string_view content)>;

  // `option` is what the user gave it by; `kind` stands in "and is no trace". What is there already
  // may be replaced if it is empty or `is_ours` says so; without `is_ours`, nothing may.
  OutputFile(std::filesystem::path file, std::string option, std::string kind, IsOurs is_ours = {});

  // Before the work: throws input where something else is there.
  void check_name() const;
  // The same, and where nothing can be written there.
  void check() const;

  // Whole or not at all; checks what is there by then.
  void write(std::string_view content) const;

 private:
  bool may_replace() const;

  std::filesystem::path file_;
  std::string option_, kind_;
  IsOurs is_ours_;
};

}  // namespace paceline

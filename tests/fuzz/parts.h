// One input that stands for several files, in the order in which a target names them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/scratch.h"

namespace paceline {

inline constexpr std::string_view kPartsEnd = "\n====\n";

inline std::vector<std::string_view> split_path(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> parts;
  for (std::size_t at = rest.find(kPartsEnd); at != rest.npos; at = rest.find(kPartsEnd)) {
    parts.push_back(rest.substr(0, at));
    rest.remove_prefix(at + kPartsEnd.size());
  }
  parts.push_back(rest);
  return parts;
}

// A folder that lasts as long as the program; a file that gets no part is not there.
class FuzzFolder {
 public:
  const std::filesystem::path& path() const { return scratch_.path(); }

  void fill(const std::vector<std::string>& names, const std::vector<std::string_view>& parts) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i < parts.size()) {
        write(names[i], parts[i]);
      } else {
        std::filesystem::remove(path() / names[i]);
      }
    }
  }

  // A new file: some file systems write an old one out first.
  void write(const std::string& name, std::string_view content) {
    std::filesystem::remove(path() / name);
    std::ofstream(path() / name, std::ios::binary) << content;
  }

 private:
  Scratch scratch_;
};

}  // namespace paceline

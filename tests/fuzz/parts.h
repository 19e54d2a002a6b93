// One input that stands for several files, in the order in which a target names them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
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

// One of several readers, named by the input's first line. Each refuses by an Error alone.
struct FuzzReader {
  std::string_view name;
  void (*read)(std::string_view text, const std::vector<std::string_view>& parts);
};

template <std::size_t N>
void run_reader(const FuzzReader (&readers)[N], const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t line = all.find('\n');
  if (line == all.npos) return;
  for (const FuzzReader& reader : readers) {
    if (reader.name != all.substr(0, line)) continue;
    try {
      reader.read(all.substr(line + 1), split_path(data + line + 1, size - line - 1));
    } catch (const Error&) {
    }
  }
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

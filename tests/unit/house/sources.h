// The sources, read once.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace paceline::house {

struct Source {
  std::string path;  // from the root: "engine/core/json.cpp"
  std::string text;
};

inline std::vector<Source> read_sources(const std::vector<std::string>& folders) {
  std::vector<Source> found;
  const std::filesystem::path root = PACELINE_SOURCE_DIR;
  for (const std::string& top : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / top)) {
      const std::string ending = entry.path().extension();
      if (ending != ".cpp" && ending != ".h" && ending != ".cu" && ending != ".cuh") continue;
      std::ifstream stream(entry.path());
      std::stringstream text;
      text << stream.rdbuf();
      found.push_back({std::filesystem::relative(entry.path(), root).string(), text.str()});
    }
  }
  return found;
}

// The product's.
inline const std::vector<Source>& sources() {
  static const std::vector<Source> all =
      read_sources({"analysis", "cli", "engine", "results", "run", "slurm", "sweeps", "workloads"});
  return all;
}

}  // namespace paceline::house

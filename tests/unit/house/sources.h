// The product's sources, read once.
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

inline const std::vector<Source>& sources() {
  static const std::vector<std::string> roots = {"analysis", "cli",   "engine", "results",
                                                 "run",      "slurm", "sweeps", "workloads"};
  static const std::vector<Source> all = [] {
    std::vector<Source> found;
    const std::filesystem::path root = PACELINE_SOURCE_DIR;
    for (const std::string& top : roots) {
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
  }();
  return all;
}

}  // namespace paceline::house

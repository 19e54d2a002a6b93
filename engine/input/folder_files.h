// The files of a data set's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace paceline {

struct FolderFile {
  std::filesystem::path path;  // from the folder
  std::uint64_t size = 0;
  std::int64_t changed = 0;  // when, in the file system's own count
};

// All ordinary files below, links followed, hidden ones left out; sorted by path. Throws input.
std::vector<FolderFile> files_below(const std::filesystem::path& folder);

}  // namespace paceline

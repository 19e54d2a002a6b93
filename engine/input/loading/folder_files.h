// Lists the files of a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace paceline {

struct FolderFile {
  std::filesystem::path path;  // relative to the folder
  std::uint64_t size = 0;
  std::int64_t changed = 0;  // modification time, in the file system's unit
};

// All files that belong to the data set in a folder (MNIST or an image set), i.e. those that
// loading reads. Sorted by path. Empty if there is no set. Throws input.
std::vector<FolderFile> files_of_set(const std::filesystem::path& folder);

}  // namespace paceline

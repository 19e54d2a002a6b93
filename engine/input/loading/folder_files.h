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

// What belongs to the data set in a folder, MNIST or an image set: what loading it reads, whatever
// else lies there or links lead to. Sorted by path; empty: there is no set. Throws input.
std::vector<FolderFile> files_of_set(const std::filesystem::path& folder);

}  // namespace paceline

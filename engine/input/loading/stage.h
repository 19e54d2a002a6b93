// Copies a data set to fast node-local storage, once for all ranks and jobs of the node.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline {

struct StagedData {
  std::filesystem::path folder;  // of the copy
  std::uint64_t bytes = 0;
  bool copied = false;  // false: a copy existed already
};

// Creates into/NAME-HASH. HASH covers names, sizes and times of the files, so that a changed set
// gets a new copy. Other processes wait for a lock and then use the copy. Every file is read back
// and compared by hash. An existing copy is compared by hash if `verify` is set (once per node is
// enough), else by sizes. A copy is made under a temporary name and renamed when complete.
// Leftovers of killed jobs are removed. The empty lock file remains.
//
// Throws input: too little space (with the required size), a copy that reads back differently, a
// copy that was modified.
StagedData stage_data(const std::filesystem::path& folder, const std::filesystem::path& into,
                      bool verify);

}  // namespace paceline

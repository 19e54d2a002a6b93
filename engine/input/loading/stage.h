// Copies a data set to fast storage of the node, once for all ranks and jobs there.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline {

struct StagedData {
  std::filesystem::path folder;  // of the copy
  std::uint64_t bytes = 0;
  bool copied = false;  // false: it was there already
};

// Makes into/NAME-HASH, where HASH is of the names, sizes and times of the files, so that a changed
// set is another copy. Who comes second waits for a lock, then finds the copy. Every file is read
// back and compared by hash; an existing copy is compared again where `verify` says so (once a node
// is enough), else by sizes. A copy is made under a temporary name and renamed when it is whole;
// what a killed job left is cleared away. The empty lock file stays.
//
// Throws input: no space (says how much is needed), not the bytes that were written, a copy that
// somebody changed.
StagedData stage_data(const std::filesystem::path& folder, const std::filesystem::path& into,
                      bool verify);

}  // namespace paceline

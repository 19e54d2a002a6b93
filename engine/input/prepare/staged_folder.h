// A folder that is there whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline {

// Work goes on in OUT.partial, which is OUT once commit() returns. What an earlier, interrupted
// call left there is cleared first; a folder of that name that is not ours is refused. The
// destructor removes what was not committed.
class StagedFolder {
 public:
  // Throws usage if `out` is there and not empty; input if it cannot be made, or another process is
  // at work on it.
  explicit StagedFolder(const std::filesystem::path& out);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void commit();

 private:
  void claim();

  std::filesystem::path out_, path_;
  int lock_ = -1;
};

// An advisory lock on `file`, which is made; held until close(). Throws input if another process
// holds it.
int lock_file(const std::filesystem::path& file, const std::filesystem::path& what);

// Throws input if the file system of `folder` (or of its nearest parent) has fewer bytes left.
void check_space(const std::filesystem::path& folder, std::uint64_t bytes);

}  // namespace paceline

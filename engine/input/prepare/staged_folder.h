// A folder that appears complete or not at all.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline {

// Files are written to OUT.partial, which commit() renames to OUT. Removes leftovers of an
// interrupted call, but refuses a folder of that name that Paceline did not create. The destructor
// removes what was not committed.
class StagedFolder {
 public:
  // Throws usage if `out` exists and is not empty, input if it cannot be created or another process
  // is writing there.
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

// Creates `file` and holds an advisory lock on it until close(). Throws input if another process
// has the lock.
int lock_file(const std::filesystem::path& file, const std::filesystem::path& what);

// Throws input if the file system of `folder` (or its nearest parent) has too little space.
void check_space(const std::filesystem::path& folder, std::uint64_t bytes);

}  // namespace paceline

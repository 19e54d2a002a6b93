// Files that are there whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "engine/core/hash.h"

namespace paceline {

// Writes a file without a name (of a temporary one beside `file`, where the file system knows no
// other), syncs, and renames over `file`. Killed on the way it leaves `file` as it was.
void replace_file(const std::filesystem::path& file, std::string_view content);

// As above, but gives the name by a link that fails if it exists. False: somebody was first, and
// nothing was changed.
bool create_file(const std::filesystem::path& file, std::string_view content);

// Throws input where the two above would, and leaves nothing.
void check_writable(const std::filesystem::path& file);

// Gives the file `from` the name `to` on the same file system. False: that name is taken, and
// nothing was changed.
bool give_name(const std::filesystem::path& from, const std::filesystem::path& to);

// A large file, written piece by piece. It is gone again unless finish() was reached, so it belongs
// into a folder that gets its name last (replace_folder).
class NewFile {
 public:
  explicit NewFile(std::filesystem::path file);  // which must not exist; throws input
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void finish();  // syncs and closes

  std::size_t bytes() const { return bytes_; }
  std::string hash() const { return hash_.hex(); }  // of what was written

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  Hash hash_;
};

// Gives the folder `from`, whose files are synced, the name `to` beside it, at once and durably. A
// folder that has the name is exchanged and then removed.
void replace_folder(const std::filesystem::path& from, const std::filesystem::path& to);

// Creates the folder and its parents, or throws input saying which part could not be made.
void make_folder(const std::filesystem::path& folder);

}  // namespace paceline

#include "engine/input/folder_files.h"

#include <algorithm>

#include "engine/core/error.h"

namespace paceline {

namespace fs = std::filesystem;

std::vector<FolderFile> files_below(const fs::path& folder) {
  std::vector<FolderFile> files;
  try {
    const auto options = fs::directory_options::follow_directory_symlink;
    for (auto it = fs::recursive_directory_iterator(folder, options);
         it != fs::recursive_directory_iterator(); ++it) {
      if (it->path().filename().string().starts_with(".")) {
        it.disable_recursion_pending();
      } else if (it->is_regular_file()) {
        files.push_back({it->path().lexically_relative(folder), it->file_size(),
                         it->last_write_time().time_since_epoch().count()});
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::input, "cannot be read: " + error.code().message(),
                error.path1().string(), "check the path and its permissions");
  }
  std::sort(files.begin(), files.end(),
            [](const FolderFile& a, const FolderFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace paceline

#include "engine/input/loading/folder_files.h"

#include <algorithm>

#include "engine/core/error.h"
#include "engine/input/formats/source.h"
#include "engine/input/formats/synthetic_mark.h"
#include "engine/input/formats/tfds.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> paths_of_set(const fs::path& folder) {
  std::vector<fs::path> paths = mnist_files(folder);
  if (!is_image_set(folder)) return paths;
  const auto take = [&paths](const std::vector<fs::path>& more) {
    paths.insert(paths.end(), more.begin(), more.end());
  };
  // Opening shards takes a look at each of their records.
  if (const fs::path tfds = find_tfds(folder); !tfds.empty()) {
    take(tfds_files(tfds));
    if (has_synthetic_mark(folder)) take({folder / kSyntheticMark});
    return paths;
  }
  const ImageSet set = open_image_set(folder);
  for (const auto& [name, source] : set.splits) take(source->files());
  take(set.description_files);
  return paths;
}

}  // namespace

std::vector<FolderFile> files_of_set(const fs::path& folder) try {
  std::vector<FolderFile> files;
  for (const fs::path& path : paths_of_set(folder)) {
    files.push_back({path.lexically_relative(folder), fs::file_size(path),
                     fs::last_write_time(path).time_since_epoch().count()});
  }
  const auto before = [](const FolderFile& a, const FolderFile& b) { return a.path < b.path; };
  const auto same = [](const FolderFile& a, const FolderFile& b) { return a.path == b.path; };
  std::sort(files.begin(), files.end(), before);
  files.erase(std::unique(files.begin(), files.end(), same), files.end());
  return files;
} catch (const fs::filesystem_error& error) {
  throw Error(ErrorKind::input, "the folder cannot be read: " + error.code().message(),
              error.path1().string(), "check the path and its permissions");
}

}  // namespace paceline

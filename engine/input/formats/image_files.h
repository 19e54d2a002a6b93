// Images in separate files: one folder per class, or listed in labels.csv.
#pragma once

#include "engine/input/formats/source.h"

namespace paceline {

struct LabelledFile {
  std::filesystem::path file;
  std::int32_t label = 0;
};

// Hashes use paths relative to `root`, so that a copy elsewhere is the same set.
std::shared_ptr<const SampleSource> make_file_source(const std::filesystem::path& root,
                                                     std::vector<LabelledFile> files,
                                                     const ReadOptions& options);

// Sorts the files of each class by name: the first 80 % become "train", the others "test". A single
// file becomes "train".
void split_by_name(ImageSet& set, const std::filesystem::path& root,
                   const std::vector<LabelledFile>& files, const ReadOptions& options);

// A folder that contains train/ (and test/, validation/), or the class folders themselves. Empty if
// there are none.
std::filesystem::path find_class_folders(const std::filesystem::path& folder);
ImageSet open_class_folders(const std::filesystem::path& folder, const ReadOptions& options);

// labels.csv has a header line with the columns path and label (a number from 0, or a name). An
// optional column class names the numbers. Paths are relative to the folder.
std::filesystem::path find_labels_csv(const std::filesystem::path& folder);
ImageSet open_labels_csv(const std::filesystem::path& folder, const ReadOptions& options);

}  // namespace paceline

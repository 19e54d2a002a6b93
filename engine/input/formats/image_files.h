// Images that are files of their own: in a folder a class, or listed in labels.csv.
#pragma once

#include "engine/input/formats/source.h"

namespace paceline {

struct LabelledFile {
  std::filesystem::path file;
  std::int32_t label = 0;
};

// `root` is taken off the paths in hashes, so that a copy elsewhere is the same set.
std::shared_ptr<const SampleSource> make_file_source(const std::filesystem::path& root,
                                                     std::vector<LabelledFile> files,
                                                     const ReadOptions& options);

// Of each class the files sorted by name: the first 80 % go to "train", the others to "test". A
// class of one file goes to "train".
void split_by_name(ImageSet& set, const std::filesystem::path& root,
                   const std::vector<LabelledFile>& files, const ReadOptions& options);

// A folder with train/ (and test/, validation/) below, or with the classes' own folders.
// Empty: it is none.
std::filesystem::path find_class_folders(const std::filesystem::path& folder);
ImageSet open_class_folders(const std::filesystem::path& folder, const ReadOptions& options);

// labels.csv with a line of column names: path and label (a whole number from 0, or a name); a
// column class names the numbers. Paths start at the folder.
std::filesystem::path find_labels_csv(const std::filesystem::path& folder);
ImageSet open_labels_csv(const std::filesystem::path& folder, const ReadOptions& options);

}  // namespace paceline

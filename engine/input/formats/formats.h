// The formats that data sets are read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/input/formats/source.h"

namespace paceline {

constexpr std::size_t kMostClasses = 1 << 20;  // of a set

// CIFAR-10's binary version: records of a label byte and 3 x 32 x 32 bytes, planes of red, green
// and blue (cs.toronto.edu/~kriz/cifar.html).

// This folder, or cifar-10-batches-bin in it. Empty if neither has batches.
std::filesystem::path find_cifar10(const std::filesystem::path& folder);

// data_batch_1.bin to data_batch_5.bin are "train", which is absent if one is missing;
// test_batch.bin is "test". read() returns pixels. Throws input if there is a sixth batch.
ImageSet open_cifar10(const std::filesystem::path& folder, const ReadOptions& options);

// IDX, the format of the original MNIST files: two zero bytes, a type, a rank, big-endian extents,
// then the elements. Plain or gzipped. Format: yann.lecun.com/exdb/mnist.

struct IdxArray {
  std::vector<std::uint32_t> extents;
  std::vector<std::uint8_t> elements;
};

// Supports unsigned bytes, up to 3 extents and 2 GiB. Throws input: neither gzip nor IDX (with a
// guess of the content), cut short, more bytes than declared.
IdxArray read_idx(const std::filesystem::path& file);

// The same from memory. `name` is for error messages.
IdxArray parse_idx(std::string_view bytes, const std::string& name);

// Inflates a gzip file with all its members, up to `limit` bytes. Calls `goes_on` with the data
// inflated so far; it can stop by returning false or throwing, because a few MB may inflate to
// thousands of times as much. Throws input naming `name`.
std::string gunzip(std::string_view bytes, const std::string& name, std::size_t limit,
                   const std::function<bool(std::string_view)>& goes_on = {});

// NumPy's .npz: a zip archive of arrays, each a .npy file. Keras caches MNIST as one.
// Formats: APPNOTE.TXT of PKWARE; numpy.lib.format.

class NpzFile {
 public:
  // Throws input if the file cannot be read.
  explicit NpzFile(const std::filesystem::path& file);
  NpzFile(std::string bytes, std::string name);  // from memory; `name` is for error messages

  // Array `name` ("x_train") of unsigned bytes in C order, with up to 3 extents. Throws input
  // naming it: absent, damaged, encrypted, too large, of another type or order; or that the file is
  // not a zip archive, with a guess of its content.
  IdxArray array(const std::string& name) const;

  std::string where(const std::string& array) const;  // "mnist.npz, array x_train"

 private:
  Error no_archive() const;
  std::string content(const std::string& file, const std::string& where) const;

  std::string bytes_, name_;
};

// A folder prepared by TensorFlow Datasets: dataset_info.json (old and new form), label.labels.txt
// or features.json (old and new form), and TFRecord shards.

// The folder with dataset_info.json: this one, or a single version folder in it. Empty if there is
// none. Throws input for several versions.
std::filesystem::path find_tfds(const std::filesystem::path& folder);

// `folder` contains dataset_info.json. A split with a missing shard is listed as absent, with the
// shard's name.
ImageSet open_tfds(const std::filesystem::path& folder, const ReadOptions& options);

// The files that open_tfds() reads, except the shards.
std::vector<std::filesystem::path> tfds_files(const std::filesystem::path& folder);

// Images in separate files: one folder per class, or listed in labels.csv.

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

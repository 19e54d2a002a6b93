// Samples on disk, still encoded, with random access from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// One sample as it was read. Keep it and read into it again: its memory is reused.
struct EncodedSample {
  std::string bytes;          // what was read; `image` lies in it
  std::string_view image;     // JPEG or PNG; where height > 0 pixels, row by row, RGB
  std::int32_t label = 0;     // checked: 0..classes - 1
  int height = 0, width = 0;  // of pixels
};

// Records that cannot be reached though the set should have them.
struct LostRecords {
  std::string where;                 // the first of them, as SampleSource::where()
  std::string why;                   // "the CRC of a record's length is wrong"
  std::optional<std::size_t> count;  // nothing: the rest of the shard, nobody knows how many

  // "shard, record 17 at byte 123456: 25 records are lost (why)"
  std::string text() const;
};

// Const calls may come from several threads at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual std::size_t samples() const = 0;

  // Throws input naming where(i): damaged, cut short, no image, label out of range.
  virtual void read(std::size_t i, EncodedSample& sample) const = 0;

  // "cassava-train.tfrecord-00003-of-00008, record 17 at byte 123456", or a file's path.
  virtual std::string where(std::size_t i) const = 0;

  // The label alone. Where it lies inside the sample, the sample is read for it.
  virtual std::int32_t label(std::size_t i) const;

  // Of the samples in their order, 16 hexadecimal digits. Content is covered by the CRCs that
  // records carry, where they do; else by names, sizes, and both ends of each file.
  virtual std::string hash() const = 0;

  // Where reading goes on without them (ReadOptions).
  virtual std::vector<LostRecords> lost() const { return {}; }

  // Every file that is read, for staging.
  virtual std::vector<std::filesystem::path> files() const = 0;
};

// How the files are read.
struct ReadOptions {
  std::size_t buffer_bytes = 0;  // most that one read call asks for; 0: all of a sample
  bool skip_damaged = false;  // go on without records that cannot be reached; SampleSource::lost()
};

// A data set of a folder: its splits ("train", "test", "validation") share the classes.
struct ImageSet {
  std::string name;    // "cassava", of the files, else the folder's
  std::string format;  // "TFDS folder", "class folders", "labels.csv", "CIFAR-10 binary"
  std::vector<std::string> classes;  // names by label
  std::map<std::string, std::shared_ptr<const SampleSource>> splits;
  std::map<std::string, std::string> absent;  // declared splits that cannot be read, and why
  std::vector<std::filesystem::path> description_files;  // dataset_info.json and the like
  bool synthetic = false;  // made by us (synthetic_mark.h): records of runs on it say so

  // Throws input: the missing shard of an absent one, or the splits that there are.
  const std::shared_ptr<const SampleSource>& split(const std::string& split_name) const;
  std::string hash() const;  // of all splits and the class names
};

// Whether open_image_set() would find something to open here.
bool is_image_set(const std::filesystem::path& folder);

// Looks at the folder, and says what it looked for where it finds nothing. In order: TFDS
// (dataset_info.json here or in the one version folder below), CIFAR-10 binary, labels.csv, class
// folders. A set without a test split of its own gives the last fifth of each class to "test".
ImageSet open_image_set(const std::filesystem::path& folder, const ReadOptions& options = {});

}  // namespace paceline

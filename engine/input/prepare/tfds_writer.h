// Writes a folder like TensorFlow Datasets: shards, dataset_info.json, features.json (new form) and
// label.labels.txt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct WrittenSample {
  std::string image;     // JPEG bytes
  std::string filename;  // "train-cmd-12.jpg"
  std::int64_t label = 0;
};

class TfdsWriter {
 public:
  // `folder` exists and is empty.
  TfdsWriter(std::filesystem::path folder, std::string name, std::vector<std::string> classes);

  // Calls `sample(i)` for each i below `samples`, from several threads. Writes in the order of i,
  // so the files do not depend on the number of threads. There are at most as many shards as
  // samples.
  void write_split(const std::string& split, std::size_t samples, std::size_t shards, int threads,
                   const std::function<WrittenSample(std::size_t)>& sample);

  // Writes the three text files.
  void finish(const std::string& version, const std::string& description) const;

  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Split {
    std::string name;
    std::vector<std::size_t> shard_lengths;
    std::uint64_t bytes = 0;
  };

  std::filesystem::path folder_;
  std::string name_;
  std::vector<std::string> classes_;
  std::vector<Split> splits_;
  std::uint64_t bytes_ = 0;
};

// Writes TFRecord files (format: engine/input/formats/tfrecord.h).

class TfRecordWriter {
 public:
  // Throws input if the file cannot be created.
  explicit TfRecordWriter(const std::filesystem::path& file);

  // Writes one record. Throws input if the disk is full.
  void write(std::string_view data);

  // Must be called. Throws input if anything could not be written.
  void close();

  std::uint64_t bytes() const { return bytes_; }  // of the data of all records

 private:
  std::filesystem::path file_;
  std::ofstream stream_;
  std::uint64_t bytes_ = 0;
};

// Converts class folders to TFRecord shards, like TensorFlow Datasets.

// `from` has class folders in train/ and other splits; `to` exists and is empty. Samples are
// shuffled by a hash of their file names. The number of shards follows TensorFlow Datasets: the
// largest power of two that leaves 64 MiB per shard.
void write_shards(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::string& name, const std::string& version,
                  const std::string& description, int threads, bool quiet);

}  // namespace paceline

// Writes a folder like TensorFlow Datasets: shards, dataset_info.json, features.json (new form) and
// label.labels.txt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
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

}  // namespace paceline

// Writes TFRecord files (the format stands in engine/input/formats/tfrecord.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace paceline {

class TfRecordWriter {
 public:
  // Throws input if the file cannot be made.
  explicit TfRecordWriter(const std::filesystem::path& file);

  // One record. Throws input if the disk is full.
  void write(std::string_view data);

  // Must be called; throws input if something could not be written.
  void close();

  std::uint64_t bytes() const { return bytes_; }  // of the data of all records

 private:
  std::filesystem::path file_;
  std::ofstream stream_;
  std::uint64_t bytes_ = 0;
};

// What TensorFlow Datasets writes for a labelled image: features image, image/filename and label.
std::string image_example(std::string_view image, const std::string& filename, std::int64_t label);

}  // namespace paceline

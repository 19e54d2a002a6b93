// Writes TFRecord files (format: engine/input/formats/tfrecord.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace paceline {

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

// A labelled image as TensorFlow Datasets writes it: features image, image/filename and label.
std::string image_example(std::string_view image, const std::string& filename, std::int64_t label);

}  // namespace paceline

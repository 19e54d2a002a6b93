// Image files and records that the tests make, good and bad.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

struct JpegKind {
  int components = 3;  // 1 gray, 3 RGB, 4 CMYK as Adobe writes it
  bool progressive = false;
  int quality = 90;
};

// A smooth pattern that differs from number to number.
std::string make_jpeg(int height, int width, int number, JpegKind kind = {});
std::string make_png(int height, int width, int channels, int number, int bits = 8);
// The pattern itself, height x width x channels.
std::vector<std::uint8_t> make_pixels(int height, int width, int channels, int number);

std::string make_example(const std::string& image, std::int64_t label,
                         const std::string& image_key = "image",
                         const std::string& label_key = "label");
std::string make_record(const std::string& data);  // of a TFRecord file

void write_file(const std::filesystem::path& file, const std::string& content);

// A TFDS folder: shards of records, "pets-train.tfrecord-00000-of-00002", with dataset_info.json
// and label.labels.txt (cat, dog, owl). `shards`: of split train; the last of them is split test
// too.
void write_tfds(const std::filesystem::path& folder,
                const std::vector<std::vector<std::string>>& examples);

}  // namespace paceline

// Samples in memory, as bytes, with labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

struct Dataset {
  std::string name;  // "mnist train"
  int height = 0, width = 0, channels = 0, classes = 0;
  std::size_t samples = 0;
  std::vector<std::uint8_t> images;  // samples x height x width x channels
  std::vector<std::int32_t> labels;
  bool synthetic = false;

  std::size_t sample_bytes() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels);
  }
};

struct DatasetPair {
  Dataset train, test;
  std::string hash;  // of the files' bytes; "synthetic" where there are none
};

// The four IDX files, .gz or not, below `folder`. Throws input with the file: missing, damaged,
// counts of images and labels differ, labels out of range.
DatasetPair load_mnist(const std::filesystem::path& folder);
// The hash alone, without reading the samples.
std::string mnist_hash(const std::filesystem::path& folder);

// Random images and labels of MNIST's shape and size, from the seed.
DatasetPair synthetic_images(int height, int width, int channels, int classes, std::size_t train,
                             std::size_t test, std::uint64_t seed);

// Keeps the first `limit` samples (0: all). Throws usage if there are fewer.
void limit_samples(Dataset& dataset, std::size_t limit);

// Where a data set of this name lies: `given` (from --data) if not empty, else $PACELINE_DATA/NAME,
// ./data/NAME, and data/NAME beside the installation or the sources. Throws input naming them all.
std::filesystem::path find_data_folder(const std::string& name, const std::filesystem::path& given);

}  // namespace paceline

// Generates data sets in the formats of the real ones, for machines without access to those, and
// for measuring the input pipeline. They carry the mark of source.h.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/random.h"
#include "engine/input/decode/image.h"

namespace paceline {

struct MakeOptions {
  std::filesystem::path out;  // must be missing or empty
  std::size_t images = 0;     // of the training split
  // Default: a third, as in the real Cassava set; CIFAR-10: a fifth.
  std::optional<std::size_t> test;
  std::uint64_t seed = 1;
  int threads = 1;
  bool quiet = false;
  // Cassava only.
  int size_min = 400, size_max = 800;  // pixels per side
  // Of the training split; default 8; the other splits have half.
  std::optional<std::size_t> shards;
};

struct Made {
  std::size_t images = 0;
  std::uint64_t bytes = 0;
};

// A TFDS folder like `cassava` 0.1.0: train, test and validation with the real class distribution
// (from five images on, at least one per class). The bytes do not depend on the number of threads.
// Throws usage for invalid options, input if files cannot be written.
Made make_cassava(const MakeOptions& options);

// CIFAR-10's binary version: data_batch_1.bin to data_batch_5.bin, test_batch.bin,
// batches.meta.txt.
Made make_cifar10(const MakeOptions& options);

// Generates photographs: a cassava leaf with the signs of a disease, in front of soil and other
// leaves.
//
// They replace the real set where it is unavailable, with the same image sizes, file sizes and
// classes, which a network can learn. They say nothing about accuracy on real images.

// Labels of the real set, in order: bacterial blight, brown streak, green mite, mosaic, none.
constexpr std::array<const char*, 5> kCassavaClasses = {"cbb", "cbsd", "cgm", "cmd", "healthy"};

// A pure function of label, sizes (at least 16) and the random numbers.
Image paint_leaf(int label, int width, int height, RandomSequence& random);

// 32 x 32 pixels of one of ten textures.
Image paint_texture(int label, RandomSequence& random);

// Smooth noise for generated images: random values on a lattice, interpolated (value noise).

// A noise field with values between 0 and 1 and features of about `cell` pixels. A pure function of
// the seed.
class NoiseField {
 public:
  NoiseField(std::uint32_t seed, int width, int cell);

  // Row y, with `width` values.
  const std::vector<float>& row(int y);

 private:
  std::uint32_t seed_;
  int cell_;
  std::vector<int> left_;       // lattice column left of each pixel
  std::vector<float> towards_;  // smoothed distance from it
  std::vector<float> lattice_, row_;
};

// A 32-bit hash of three numbers.
std::uint32_t mixed_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c);

// On [0, 1).
inline float mixed_unit(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return static_cast<float>(mixed_bits(a, b, c) >> 8) * (1.0F / 16777216.0F);
}

// Encodes pixels as baseline JPEG.

// RGB, 4:2:0. `quality` is libjpeg's, from 1 to 100.
std::string encode_jpeg(const Image& image, int quality);

}  // namespace paceline

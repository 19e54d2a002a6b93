// Generates data sets in the formats of the real ones, for machines without access to those, and
// for measuring the input pipeline. They carry the mark of source.h.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

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
  // Shards of the training split; default 8. Other splits have half as many.
  std::optional<std::size_t> shards;
  std::size_t tokens = 0;  // text only: of the training split
};

struct Made {
  std::size_t images = 0;
  std::uint64_t bytes = 0;
  // Text only: nats a token, the least mean loss that a model of it can have.
  std::optional<double> entropy = {};
};

// A TFDS folder like `cassava` 0.1.0: train, test and validation with the real class distribution
// (from five images on, at least one per class). The bytes do not depend on the number of threads.
// Throws usage for invalid options, input if files cannot be written.
Made make_cassava(const MakeOptions& options);

// CIFAR-10's binary version: data_batch_1.bin to data_batch_5.bin, test_batch.bin,
// batches.meta.txt.
Made make_cifar10(const MakeOptions& options);

// train.txt and val.txt: letters a to p, each drawn by probabilities that depend on the two before
// it (four letters may follow each pair), so that the entropy of a letter is known: the mean over
// pairs, weighed by how often they occur, of -sum p log p. `test` counts tokens; default: a tenth.
Made make_text(const MakeOptions& options);

// One of these by name. Throws usage for another one.
Made make_set(const std::string& name, const MakeOptions& options);

// Labels of the real set, in order: bacterial blight, brown streak, green mite, mosaic, none.
constexpr std::array<const char*, 5> kCassavaClasses = {"cbb", "cbsd", "cgm", "cmd", "healthy"};

// Smooth noise in the place of a photograph: as large a JPEG, and the hue of its class, which a
// network can learn. A pure function of label, sizes and the random numbers.
Image make_noise(int label, int classes, int width, int height, RandomSequence& random);

// Baseline JPEG, RGB, 4:2:0. `quality` is libjpeg's, from 1 to 100.
std::string encode_jpeg(const Image& image, int quality);

}  // namespace paceline

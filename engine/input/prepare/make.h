// Generates data sets in the formats of the real ones, for machines without access to those, and
// for measuring the input pipeline. They carry the mark of synthetic_mark.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

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

}  // namespace paceline

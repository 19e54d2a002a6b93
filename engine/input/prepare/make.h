// Data sets made here, in the formats of the real ones: for machines that the real ones do not
// reach, and for measuring the input pipeline. They carry the mark of synthetic_mark.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace paceline {

struct MakeOptions {
  std::filesystem::path out;        // a folder that is not there, or empty
  std::size_t images = 0;           // of the training split
  std::optional<std::size_t> test;  // a third of it, as in the real Cassava set; CIFAR-10: a fifth
  std::uint64_t seed = 1;
  int threads = 1;
  bool quiet = false;
  // Cassava only.
  int size_min = 400, size_max = 800;  // pixels of a side
  std::optional<std::size_t> shards;   // of the training split: 8, and half of them for the others
};

struct Made {
  std::size_t images = 0;
  std::uint64_t bytes = 0;
};

// A TFDS folder as of `cassava` 0.1.0: train, test and validation, the real share of classes (with
// one image of each at least, where there are five). The same bytes whatever the threads. Throws
// usage for options that make no set, input where files cannot be written.
Made make_cassava(const MakeOptions& options);

// CIFAR-10's binary version: data_batch_1.bin to 5, test_batch.bin, batches.meta.txt.
Made make_cifar10(const MakeOptions& options);

}  // namespace paceline

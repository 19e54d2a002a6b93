// Verifies a data set: reads every record, checks its CRC, and decodes every image.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/json.h"

namespace paceline {

struct VerifiedSplit {
  std::string name;
  std::size_t images = 0;                 // declared or listed
  std::vector<std::size_t> class_images;  // good ones, by label
  std::size_t bad = 0;
};

struct Verified {
  std::string name, format;
  std::vector<std::string> classes;
  bool synthetic = false;
  std::vector<VerifiedSplit> splits;
  std::vector<std::string> problems;  // one line each, with shard, record and byte
  std::size_t more_problems = 0;      // beyond the first kMostProblems
  std::size_t images = 0;             // good ones
  std::uint64_t bytes = 0;            // of these, on disk
  // In pixels: the smallest and largest side, and the median number of pixels.
  int least_side = 0, most_side = 0;
  std::size_t median_pixels = 0;
  double seconds = 0;

  static constexpr std::size_t kMostProblems = 1000;
  bool whole() const { return problems.empty(); }
};

std::string to_text(const Verified& verified);  // for people, with the first problems
Json to_json(const Verified& verified);

// Also handles MNIST's IDX files. Throws input only if `folder` has no data set.
Verified verify_folder(const std::filesystem::path& folder, int threads, bool quiet);

}  // namespace paceline

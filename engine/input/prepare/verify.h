// Is a data set whole? Every record is read, its CRC checked, and every image decoded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

struct VerifiedSplit {
  std::string name;
  std::size_t images = 0;                 // that are declared or listed
  std::vector<std::size_t> class_images;  // of those that are good, by label
  std::size_t bad = 0;
};

struct Verified {
  std::string name, format;
  std::vector<std::string> classes;
  bool synthetic = false;
  std::vector<VerifiedSplit> splits;
  std::vector<std::string> problems;  // a line each: what, and in which shard, record, byte
  std::size_t more_problems = 0;      // beyond the first kMostProblems
  std::size_t images = 0;             // good ones
  std::uint64_t bytes = 0;            // of them, as they lie on disk
  // Of a side, in pixels: the smallest and the largest; and the median number of pixels.
  int least_side = 0, most_side = 0;
  std::size_t median_pixels = 0;
  double seconds = 0;

  static constexpr std::size_t kMostProblems = 1000;
  bool whole() const { return problems.empty(); }
};

// MNIST's IDX files too. Throws input only if there is no data set in `folder`.
Verified verify_folder(const std::filesystem::path& folder, int threads, bool quiet);

}  // namespace paceline

// IDX, the format of the original MNIST files: two zero bytes, a type, a rank, big-endian extents,
// then the elements. Read as it is or gzipped. Format: yann.lecun.com/exdb/mnist.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct IdxArray {
  std::vector<std::uint32_t> extents;
  std::vector<std::uint8_t> elements;
};

// Unsigned bytes only, at most 3 extents and 2 GiB. Throws input: not gzip or IDX (says what it
// looks like), cut short, more bytes than the header says.
IdxArray read_idx(const std::filesystem::path& file);

// The same from bytes in memory; `name` stands in errors.
IdxArray parse_idx(std::string_view bytes, const std::string& name);

// Inflates a gzip file's bytes, at most `limit` of them.
std::string gunzip(std::string_view bytes, const std::string& name, std::size_t limit);

}  // namespace paceline

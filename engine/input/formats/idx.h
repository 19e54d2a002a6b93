// IDX, the format of the original MNIST files: two zero bytes, a type, a rank, big-endian extents,
// then the elements. Read as it is or gzipped. Format: yann.lecun.com/exdb/mnist.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

// Inflates a gzip file's bytes, all its members, at most `limit` bytes. `goes_on` is asked of what
// is inflated so far, a part at a time, and ends it early by false or its own error: a few MB may
// inflate to thousands of times as much. Throws input naming `name`.
std::string gunzip(std::string_view bytes, const std::string& name, std::size_t limit,
                   const std::function<bool(std::string_view)>& goes_on = {});

}  // namespace paceline

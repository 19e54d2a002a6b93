// IDX, the format of the original MNIST files: two zero bytes, a type, a rank, big-endian extents,
// then the elements. Plain or gzipped. Format: yann.lecun.com/exdb/mnist.
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

// Supports unsigned bytes, up to 3 extents and 2 GiB. Throws input: neither gzip nor IDX (with a
// guess of the content), cut short, more bytes than declared.
IdxArray read_idx(const std::filesystem::path& file);

// The same from memory. `name` is for error messages.
IdxArray parse_idx(std::string_view bytes, const std::string& name);

// Inflates a gzip file with all its members, up to `limit` bytes. Calls `goes_on` with the data
// inflated so far; it can stop by returning false or throwing, because a few MB may inflate to
// thousands of times as much. Throws input naming `name`.
std::string gunzip(std::string_view bytes, const std::string& name, std::size_t limit,
                   const std::function<bool(std::string_view)>& goes_on = {});

}  // namespace paceline

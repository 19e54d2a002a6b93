// The files that `paceline data fetch` knows: URLs, sizes, and published checksums. docs/data.md
// has the source of each number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

struct PublishedFile {
  std::string name;  // also the last part of its URL
  std::string base;  // the URL without the name and the slash
  std::uint64_t bytes = 0;
  std::string algorithm;  // "sha256" or "md5", as published
  std::string digest;     // hexadecimal
};

struct PublishedSet {
  std::string name, about;
  std::vector<PublishedFile> files;
  // For archives: the folder to keep, and its approximate size in bytes.
  std::string folder;
  std::uint64_t unpacked_bytes = 0;

  std::uint64_t bytes() const;
};

const std::vector<PublishedSet>& published_sets();
const PublishedSet* find_published(const std::string& name);  // null: unknown

}  // namespace paceline

// The files that `paceline data fetch` knows: where they lie, how large they are, and the checksums
// that others published. docs/data.md says from where each number was taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

struct PublishedFile {
  std::string name;  // also the last part of its URL
  std::string base;  // the URL before the name, without the slash
  std::uint64_t bytes = 0;
  std::string algorithm;  // "sha256" or "md5", as published
  std::string digest;     // hexadecimal
};

struct PublishedSet {
  std::string name, about;
  std::vector<PublishedFile> files;
  // Of an archive: the folder in it, which is what is kept, and about how many bytes it holds.
  std::string folder;
  std::uint64_t unpacked_bytes = 0;

  std::uint64_t bytes() const;
};

const std::vector<PublishedSet>& published_sets();
const PublishedSet* find_published(const std::string& name);  // null: unknown

}  // namespace paceline

// A compressed tar file of small files, written and read entry by entry.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/file.h"

struct archive;

namespace paceline {

using TarHandle = std::unique_ptr<::archive, int (*)(::archive*)>;

// Compresses as the ending of the name says: .tar.zst, .tar.gz, .tar.xz. The same entries give the
// same bytes: there are no times and no owners.
class TarWriter {
 public:
  // Throws usage for another ending, or if libarchive lacks this compression; input if the file
  // exists or cannot be written. It has its name after finish().
  explicit TarWriter(std::filesystem::path file);

  void add(const std::string& name, std::string_view content);
  void finish();  // throws input if a file has the name by now

 private:
  void check(int code);  // rethrows what the file threw

  std::filesystem::path file_, temporary_;
  NewFile output_;
  std::exception_ptr thrown_;
  TarHandle writer_;
};

// Throws input naming the archive: damaged, cut short, compressed in another way.
class TarReader {
 public:
  explicit TarReader(std::filesystem::path file);

  // The name of the next entry. Empty at the end. Throws input for anything but a plain file.
  std::optional<std::string> next();
  // The content of the entry. Throws input if it is larger than `limit`, whatever it claims to be.
  std::string content(std::size_t limit);

  const std::string& where() const { return where_; }  // "a.tar.zst", "a.tar.zst, entry x"

 private:
  [[noreturn]] void fail() const;

  std::string file_, where_;
  TarHandle reader_;
  std::vector<char> buffer_;
};

}  // namespace paceline

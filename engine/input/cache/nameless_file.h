// An unlinked file, which disappears with the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace paceline {

class NamelessFile {
 public:
  // Throws input if it cannot be created in `folder`.
  explicit NamelessFile(const std::filesystem::path& folder);
  // Takes ownership of an open file. `name` is for error messages.
  NamelessFile(int descriptor, std::filesystem::path name);
  ~NamelessFile();
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  int descriptor() const { return descriptor_; }

  // Thread-safe. False: no space left.
  bool write(std::int64_t offset, const char* data, std::size_t count);
  void read(std::int64_t offset, std::size_t count, char* out) const;  // throws input

 private:
  std::filesystem::path place_;
  int descriptor_ = -1;
};

}  // namespace paceline

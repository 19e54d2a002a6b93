// An unlinked file, which disappears with the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace paceline {

class UnlinkedFile {
 public:
  // Throws input if it cannot be created in `folder`.
  explicit UnlinkedFile(const std::filesystem::path& folder);
  // Takes ownership of an open file. `name` is for error messages.
  UnlinkedFile(int descriptor, std::filesystem::path name);
  ~UnlinkedFile();
  UnlinkedFile(const UnlinkedFile&) = delete;
  UnlinkedFile& operator=(const UnlinkedFile&) = delete;

  int descriptor() const { return descriptor_; }

  // Thread-safe. False: no space left.
  bool write(std::int64_t offset, const char* data, std::size_t count);
  void read(std::int64_t offset, std::size_t count, char* out) const;  // throws input

 private:
  std::filesystem::path place_;
  int descriptor_ = -1;
};

}  // namespace paceline

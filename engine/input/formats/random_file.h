// Random-access reads of a file, or of bytes in memory. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace paceline {

class RandomFile {
 public:
  // Throws input if it cannot be opened or is not a regular file. `buffer_bytes`: largest single
  // read; 0: unlimited.
  explicit RandomFile(const std::filesystem::path& file, std::size_t buffer_bytes = 0);
  // Bytes in memory. `name` is for error messages.
  RandomFile(std::string name, std::string content);
  ~RandomFile();
  RandomFile(RandomFile&& other) noexcept;
  RandomFile& operator=(RandomFile&&) = delete;

  const std::string& name() const { return name_; }  // without its folder
  std::uint64_t size() const { return size_; }

  // Reads exactly `count` bytes at `offset`, which must be inside size(). Throws input if the file
  // was truncated or cannot be read.
  void read(std::uint64_t offset, std::size_t count, char* out) const;

 private:
  std::string name_, content_;
  std::uint64_t size_ = 0;
  std::size_t buffer_bytes_ = 0;
  int descriptor_ = -1;
};

// A guess of the content, for error messages: "is a git-lfs pointer, not the file itself", "is a
// web page", "is empty". May be empty.
std::string guess_content(std::string_view head);

}  // namespace paceline

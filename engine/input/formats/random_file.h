// A file, or bytes in memory, read at any offset from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace paceline {

class RandomFile {
 public:
  // Throws input if it cannot be opened or is no ordinary file. `buffer_bytes`: the most that one
  // read call asks for; 0: no limit.
  explicit RandomFile(const std::filesystem::path& file, std::size_t buffer_bytes = 0);
  // Bytes in memory; `name` stands in errors.
  RandomFile(std::string name, std::string content);
  ~RandomFile();
  RandomFile(RandomFile&& other) noexcept;
  RandomFile& operator=(RandomFile&&) = delete;

  const std::string& name() const { return name_; }  // the file's own, without its folder
  std::uint64_t size() const { return size_; }

  // Exactly `count` bytes from `offset`, which lie inside size(). Throws input where the file has
  // become shorter or cannot be read.
  void read(std::uint64_t offset, std::size_t count, char* out) const;

 private:
  std::string name_, content_;
  std::uint64_t size_ = 0;
  std::size_t buffer_bytes_ = 0;
  int descriptor_ = -1;
};

// What this file seems to be where it is not what was looked for: "is a git-lfs pointer, not the
// file itself", "is a web page", "is empty"; or nothing.
std::string guess_content(std::string_view head);

}  // namespace paceline

// A file without a name, so that nothing is left behind whatever happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace paceline {

class NamelessFile {
 public:
  // Throws input if `folder` cannot hold one.
  explicit NamelessFile(const std::filesystem::path& folder);
  // An open one, now owned; `name` stands in errors.
  NamelessFile(int descriptor, std::filesystem::path name);
  ~NamelessFile();
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  int descriptor() const { return descriptor_; }

  // From any thread. False where there is no more space.
  bool write(std::int64_t offset, const char* data, std::size_t count);
  void read(std::int64_t offset, std::size_t count, char* out) const;  // throws input

 private:
  std::filesystem::path place_;
  int descriptor_ = -1;
};

}  // namespace paceline

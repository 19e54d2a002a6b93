#include "engine/input/formats/random_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

Error unreadable(const std::string& name, int code) {
  return {ErrorKind::input, std::string("cannot be read: ") + std::strerror(code), name,
          "check the path, its permissions and the disk"};
}

}  // namespace

RandomFile::RandomFile(const std::filesystem::path& file, std::size_t buffer_bytes)
    : name_(file.filename().string()), buffer_bytes_(buffer_bytes) {
  descriptor_ = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would block
  if (descriptor_ < 0) throw unreadable(file.string(), errno);
  struct stat status {};
  const int code = fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (code != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor_);
    if (code != 0) throw unreadable(file.string(), code);
    throw Error(ErrorKind::input, "not a regular file", file.string(), "name a file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

RandomFile::RandomFile(std::string name, std::string content)
    : name_(std::move(name)), content_(std::move(content)), size_(content_.size()) {}

RandomFile::~RandomFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

RandomFile::RandomFile(RandomFile&& other) noexcept
    : name_(std::move(other.name_)),
      content_(std::move(other.content_)),
      size_(other.size_),
      buffer_bytes_(other.buffer_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

void RandomFile::read(std::uint64_t offset, std::size_t count, char* out) const {
  if (offset > size_ || count > size_ - offset) {
    throw Error(ErrorKind::internal, "a read beyond the end of a file", name_);
  }
  if (descriptor_ < 0) {
    std::memcpy(out, content_.data() + offset, count);
    return;
  }
  while (count > 0) {
    const std::size_t part = buffer_bytes_ ? std::min(count, buffer_bytes_) : count;
    const ssize_t n = pread(descriptor_, out, part, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw unreadable(name_, errno);
    if (n == 0) {
      throw Error(ErrorKind::input, fmt::format("became shorter while in use, at byte {}", offset),
                  name_, "leave the files alone during a run");
    }
    out += n;
    offset += static_cast<std::uint64_t>(n);
    count -= static_cast<std::size_t>(n);
  }
}

std::string guess_content(std::string_view head) {
  if (head.empty()) return "is empty";
  if (head.starts_with("version https://git-lfs")) {
    return "is a git-lfs pointer, not the file itself";
  }
  const std::string_view text = trim(head.substr(0, std::min<std::size_t>(head.size(), 512)));
  for (const char* start : {"<!", "<html", "<HTML", "<?xml"}) {
    if (text.starts_with(start)) return "is a web page: the download failed";
  }
  return "";
}

}  // namespace paceline

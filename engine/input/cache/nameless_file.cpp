#include "engine/input/cache/nameless_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "engine/core/error.h"

namespace paceline {

UnlinkedFile::UnlinkedFile(const std::filesystem::path& folder) : place_(folder) {
  descriptor_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  std::string name = (folder / "paceline-cache-XXXXXX").string();  // where O_TMPFILE is unknown
  descriptor_ = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    throw Error(ErrorKind::input,
                std::string("the folder cannot hold the cache: ") + std::strerror(errno),
                folder.string(), "give another --cache-dir");
  }
  unlink(name.c_str());
}

UnlinkedFile::UnlinkedFile(int descriptor, std::filesystem::path name)
    : place_(std::move(name)), descriptor_(descriptor) {}

UnlinkedFile::~UnlinkedFile() {
  close(descriptor_);
}

bool UnlinkedFile::write(std::int64_t offset, const char* data, std::size_t count) {
  while (count > 0) {
    const ssize_t n = pwrite(descriptor_, data, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    offset += n;
    count -= static_cast<std::size_t>(n);
  }
  return true;
}

void UnlinkedFile::read(std::int64_t offset, std::size_t count, char* out) const {
  while (count > 0) {
    const ssize_t n = pread(descriptor_, out, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw Error(ErrorKind::input,
                  std::string("the cache cannot be read: ") +
                      (n < 0 ? std::strerror(errno) : "its file is too short"),
                  place_.string(), "give another --cache-dir");
    }
    out += n;
    offset += n;
    count -= static_cast<std::size_t>(n);
  }
}

}  // namespace paceline

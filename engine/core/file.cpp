#include "engine/core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "engine/core/error.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const fs::path& file, int code) {
  const char* fix = code == ENOSPC || code == EDQUOT ? "free some space or choose another folder"
                                                     : "check the path and its permissions";
  throw Error(ErrorKind::input, std::string("cannot be written: ") + std::strerror(code),
              file.string(), fix);
}

// Removes the temporary name unless it was given away.
class Temporary {
 public:
  explicit Temporary(const fs::path& final_name) {
    static std::atomic<unsigned> counter{0};
    path_ = final_name;
    path_ += fmt::format(".{}.{}.tmp", getpid(), counter++);
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail(final_name, errno);
  }
  ~Temporary() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(std::string_view content) {
    while (!content.empty()) {
      const ssize_t n = ::write(descriptor_, content.data(), content.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path_, errno);
      content.remove_prefix(static_cast<std::size_t>(n));
    }
    if (fsync(descriptor_) != 0) fail(path_, errno);
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail(path_, errno);
  }

  const fs::path& path() const { return path_; }
  void given_away() { path_.clear(); }

 private:
  fs::path path_;
  int descriptor_ = -1;
};

// Makes a new name in `folder` durable. Some file systems cannot; that is no reason to fail.
void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return;
  (void)fsync(descriptor);
  close(descriptor);
}

}  // namespace

void replace_file(const fs::path& file, std::string_view content) {
  Temporary temporary(file);
  temporary.write(content);
  if (rename(temporary.path().c_str(), file.c_str()) != 0) fail(file, errno);
  temporary.given_away();
  sync_folder(file.parent_path());
}

bool create_file(const fs::path& file, std::string_view content) {
  Temporary temporary(file);
  temporary.write(content);
  if (link(temporary.path().c_str(), file.c_str()) != 0) {
    if (errno == EEXIST) return false;
    fail(file, errno);
  }
  sync_folder(file.parent_path());
  return true;
}

void make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!code && fs::is_directory(folder)) return;
  fs::path part = folder;
  while (!part.empty() && part != part.parent_path() && !fs::exists(part.parent_path())) {
    part = part.parent_path();
  }
  throw Error(ErrorKind::input,
              "folder cannot be made: " + (code ? code.message() : std::string("a file is there")),
              part.string(), "choose another folder or mend its permissions");
}

}  // namespace paceline

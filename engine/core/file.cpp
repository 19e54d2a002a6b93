#include "engine/core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

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

void write_all(int descriptor, std::string_view content, const fs::path& file) {
  while (!content.empty()) {
    const ssize_t n = ::write(descriptor, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(file, errno);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

// `descriptor` becomes -1 once it is closed.
void sync_and_close(int& descriptor, const fs::path& file) {
  if (fsync(descriptor) != 0) fail(file, errno);
  if (close(std::exchange(descriptor, -1)) != 0) fail(file, errno);
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
    write_all(descriptor_, content, path_);
    sync_and_close(descriptor_, path_);
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

NewFile::NewFile(fs::path file) : file_(std::move(file)) {
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(file_, errno);
}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(file_.c_str());
}

void NewFile::write(const void* data, std::size_t bytes) {
  write_all(descriptor_, {static_cast<const char*>(data), bytes}, file_);
  hash_.add(data, bytes);
  bytes_ += bytes;
}

void NewFile::finish() {
  sync_and_close(descriptor_, file_);
}

void replace_folder(const fs::path& from, const fs::path& to) {
  sync_folder(from);
  if (fs::exists(to)) {
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
      // Not every file system can: then the name is free for a moment.
      fs::path old = from;
      old += ".old";
      if (rename(to.c_str(), old.c_str()) != 0) fail(to, errno);
      if (rename(from.c_str(), to.c_str()) != 0) fail(to, errno);
      fs::remove_all(old);
    } else {
      fs::remove_all(from);
    }
  } else if (rename(from.c_str(), to.c_str()) != 0) {
    fail(to, errno);
  }
  sync_folder(to.parent_path());
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

#include "engine/input/prepare/staged_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kLock[] = ".paceline-lock";

fs::path normal(const fs::path& out) {
  const fs::path whole = fs::absolute(out).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

}  // namespace

int lock_file(const fs::path& file, const fs::path& what) {
  const int descriptor = open_lock_file(file);
  if (descriptor < 0) {
    throw Error(ErrorKind::input,
                std::string("the folder cannot be written: ") + std::strerror(errno), what.string(),
                "choose another folder or fix its permissions");
  }
  // A file system without locks is no reason to refuse the work.
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(descriptor);
    throw Error(ErrorKind::input, "another paceline is writing there", what.string(),
                "wait for it, or choose another folder");
  }
  return descriptor;
}

void check_space(const fs::path& folder, std::uint64_t bytes) {
  fs::path at = fs::absolute(folder);
  while (!fs::exists(at) && at != at.parent_path()) at = at.parent_path();
  std::error_code code;
  const fs::space_info space = fs::space(at, code);
  if (code || space.available >= bytes) return;
  throw Error(ErrorKind::input,
              "too little space: " + format_bytes(static_cast<double>(bytes)) + " are needed, " +
                  format_bytes(static_cast<double>(space.available)) + " are free",
              folder.string(), "free some, or choose another folder");
}

StagedFolder::StagedFolder(const fs::path& out) : out_(normal(out)), path_(out_) {
  path_ += ".partial";
  if (fs::exists(out_) && (!fs::is_directory(out_) || !fs::is_empty(out_))) {
    throw Error(ErrorKind::usage, "the folder exists and is not empty; nothing is overwritten",
                out.string(), "use --out with a new folder");
  }
  claim();
}

void StagedFolder::claim() {
  if (fs::exists(path_) && !fs::exists(path_ / kLock) && !fs::is_empty(path_)) {
    throw Error(ErrorKind::usage, "the file was not written by paceline", path_.string(),
                "remove it, or choose another --out");
  }
  make_folder(path_);
  lock_ = lock_file(path_ / kLock, path_);
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().filename() != kLock) fs::remove_all(entry.path());
  }
}

void StagedFolder::commit() {
  std::error_code code;
  fs::remove(path_ / kLock, code);
  if (!code) fs::rename(path_, out_, code);
  if (code) {
    throw Error(ErrorKind::input, "the folder cannot be renamed: " + code.message(), out_.string(),
                "choose another folder or fix its permissions");
  }
  path_.clear();
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace paceline

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "sweeps/inventory.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kLock[] = ".lock";

// "process 123 on node7"
std::string find_holder(int descriptor) {
  std::array<char, 300> text{};
  const ssize_t got = read(descriptor, text.data(), text.size() - 1);
  return got > 0 ? std::string(trim(text.data())) : "unknown process";
}

std::string this_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}\n", getpid(), host.data());
}

[[noreturn]] void refuse(int descriptor, const fs::path& study) {
  const int code = errno;
  if (code == EWOULDBLOCK) {
    const std::string holder = find_holder(descriptor);
    close(descriptor);
    throw input_error(fmt::format("another command ({}) is writing into this study", holder),
                      study.string(), "wait for it, or use another folder");
  }
  if (descriptor >= 0) close(descriptor);
  if (code == ELOOP) {
    throw input_error("the study's lock is not a plain file, but a link or the like",
                      (study / kLock).string(), "remove it");
  }
  const bool has_none = code == ENOSYS || code == EOPNOTSUPP || code == ENOLCK;
  throw input_error(fmt::format("the study cannot be locked: {}{}", std::strerror(code),
                                has_none ? " (its file system has no locks)" : ""),
                    study.string(), "use another folder");
}

// Not so if its last holder has removed it meanwhile.
bool is_at_path(int descriptor, const fs::path& file) {
  struct stat ours {
  }, there{};
  return fstat(descriptor, &ours) == 0 && stat(file.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

}  // namespace

StudyLock::StudyLock(const fs::path& study) : descriptor_(-1) {
  for (fs::path folder = study; !folder.empty() && !path_exists(folder);
       folder = folder.parent_path()) {
    created_.push_back(folder);
  }
  do {
    if (descriptor_ >= 0) close(descriptor_);
    folder_.emplace(study);
    descriptor_ = open_lock_file(study / kLock);
    if (descriptor_ < 0 || flock(descriptor_, LOCK_EX | LOCK_NB) != 0) refuse(descriptor_, study);
  } while (!is_at_path(descriptor_, study / kLock));
  if ((fcntl(descriptor_, F_GETFL) & O_ACCMODE) == O_RDONLY) return;  // nobody else's name
  const std::string name = this_process();
  const auto size = static_cast<ssize_t>(name.size());
  if (ftruncate(descriptor_, 0) != 0 || write(descriptor_, name.data(), name.size()) != size) {
    refuse(descriptor_, study);
  }
}

StudyLock::~StudyLock() {
  std::error_code ignored;
  if (!folder_->is_at_path()) created_.clear();
  if (!created_.empty()) fs::remove(folder_->path() / kLock, ignored);
  close(descriptor_);  // first: NFS keeps an open file in its folder
  for (const fs::path& folder : created_) fs::remove(folder, ignored);  // only an empty one
}

}  // namespace paceline

#include "engine/core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/json.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kDescriptors[] = "/proc/self/fd";  // by which a nameless file gets a name

[[noreturn]] void fail(const fs::path& file, int code) {
  const char* fix = code == ENOSPC || code == EDQUOT ? "free some space or choose another folder"
                                                     : "check the path and its permissions";
  throw Error(ErrorKind::input, std::string("the file cannot be written: ") + std::strerror(code),
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

void sync(int descriptor, const fs::path& file) {
  if (fsync(descriptor) != 0) fail(file, errno);
}

// A file that is there only as long as this object, or until it gets its final name. Where the file
// system can, it has no name at all: what is killed leaves nothing behind.
class Temporary {
 public:
  explicit Temporary(const fs::path& final_name) : final_name_(final_name) {
    const fs::path folder = final_name.has_parent_path() ? final_name.parent_path() : ".";
    if (access(kDescriptors, X_OK) == 0) {
      descriptor_ = open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    }
    if (descriptor_ >= 0) return;
    path_ = temporary_name();
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(final_name, errno);
  }
  ~Temporary() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(std::string_view content) {
    write_all(descriptor_, content, final_name_);
    sync(descriptor_, final_name_);
  }

  // False: the name is taken.
  bool create() {
    if (link_to(final_name_)) return true;
    if (errno == EEXIST) return false;
    fail(final_name_, errno);
  }

  void replace() {
    if (path_.empty()) {
      const fs::path name = temporary_name();
      if (!link_to(name)) fail(final_name_, errno);
      path_ = name;
    }
    if (rename(path_.c_str(), final_name_.c_str()) != 0) fail(final_name_, errno);
    path_.clear();
  }

 private:
  fs::path temporary_name() const {
    static std::atomic<unsigned> counter{0};
    fs::path name = final_name_;
    return name += fmt::format(".{}.{}.tmp", getpid(), counter++);
  }

  bool link_to(const fs::path& name) const {
    if (!path_.empty()) return link(path_.c_str(), name.c_str()) == 0;
    const std::string self = fmt::format("{}/{}", kDescriptors, descriptor_);
    return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }

  fs::path final_name_, path_;  // path_: where it has a temporary name
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
  temporary.replace();
  sync_folder(file.parent_path());
}

bool create_file(const fs::path& file, std::string_view content) {
  Temporary temporary(file);
  temporary.write(content);
  if (!temporary.create()) return false;
  sync_folder(file.parent_path());
  return true;
}

void check_writable(const fs::path& file) {
  const Temporary probe(file);
}

bool path_exists(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) return false;
  if (!code) return true;
  try {
    throw fs::filesystem_error("status", path, code);
  } catch (...) {
    throw caught_error();
  }
}

int open_lock_file(const fs::path& file) noexcept {
  constexpr int kFlags = O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int descriptor = open(file.c_str(), O_RDWR | kFlags, 0666);
  if (descriptor < 0 && errno == EACCES) {
    descriptor = open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  }
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0) return descriptor;
  if (S_ISREG(status.st_mode) && status.st_nlink == 1) return descriptor;
  close(descriptor);
  errno = ELOOP;
  return -1;
}

bool give_name(const fs::path& from, const fs::path& to) {
  if (link(from.c_str(), to.c_str()) != 0) {
    if (errno == EEXIST) return false;
    fail(to, errno);
  }
  unlink(from.c_str());
  sync_folder(to.parent_path());
  return true;
}

NewFile::NewFile(fs::path file) : file_(std::move(file)) {
  descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
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
  sync(descriptor_, file_);
  if (close(std::exchange(descriptor_, -1)) != 0) fail(file_, errno);
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
  while (part.has_parent_path() && part != part.parent_path() && !fs::exists(part.parent_path())) {
    part = part.parent_path();
  }
  throw Error(
      ErrorKind::input,
      "folder cannot be created: " + (code ? code.message() : std::string("a file is there")),
      part.string(), "choose another folder or fix its permissions");
}

ScratchFolder::ScratchFolder(const std::string& prefix) {
  std::error_code code;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(code);
  std::string name = ((code ? "/tmp" : parent) / (prefix + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(ErrorKind::input,
                std::string("a temporary folder cannot be created: ") + std::strerror(errno), name,
                "set TMPDIR to a writable folder");
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

OutputFile::OutputFile(fs::path file, std::string option, std::string kind, IsOurs is_ours)
    : file_(std::move(file)),
      option_(std::move(option)),
      kind_(std::move(kind)),
      is_ours_(std::move(is_ours)) {
  // A link stands for what it leads to, also where that is yet to be made.
  constexpr int kMostLinks = 40;
  std::error_code none;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(file_, none)); ++i) {
    file_ = file_.parent_path() / fs::read_symlink(file_, none);
  }
}

void OutputFile::check_name() const {
  std::error_code none;
  const fs::file_status there = fs::symlink_status(file_, none);
  if (!fs::exists(there)) return;
  if (!fs::is_regular_file(there)) {
    throw Error(ErrorKind::input, "this is not a regular file", option_ + " " + file_.string(),
                "give another name");
  }
  if (!is_ours_) {
    throw Error(ErrorKind::input, "the file exists already", option_ + " " + file_.string(),
                "a " + kind_ + " never replaces a file: give another name");
  }
  if (may_replace()) return;
  throw Error(ErrorKind::input, "the file exists already and is no " + kind_,
              option_ + " " + file_.string(), "give another name, or move it away");
}

bool OutputFile::may_replace() const {
  try {
    const std::string content = read_text(file_);
    return content.empty() || is_ours_(content);
  } catch (const std::exception&) {
    return false;  // not to be read, or too long: no file of ours
  }
}

void OutputFile::check() const {
  check_name();
  check_writable(file_);
}

void OutputFile::write(std::string_view content) const {
  if (create_file(file_, content)) return;
  check_name();
  replace_file(file_, content);
}

fs::path program_file() {
  std::error_code error;
  fs::path file = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  if (file.filename().string().rfind("ld-", 0) == 0) {
    file = fs::absolute(program_invocation_name, error);
  }
  if (file.parent_path().filename() != "libexec") return file;
  const fs::path starter = file.parent_path().parent_path() / "bin" / file.filename();
  return fs::exists(starter, error) ? starter : file;
}

}  // namespace paceline

#include "engine/core/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
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

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

void Descriptor::close() noexcept {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

namespace {

constexpr char kDescriptors[] = "/proc/self/fd";  // by which a nameless file gets a name

[[noreturn]] void fail(const fs::path& file, int code) {
  if (code == ELOOP) {
    throw input_error("a link is here, which may lead to files that are not ours", file.string(),
                      "remove it");
  }
  const char* fix = code == ENOSPC || code == EDQUOT   ? "free some space or choose another folder"
                    : code == EMFILE || code == ENFILE ? "raise the limit on open files (ulimit -n)"
                                                       : "check the path and its permissions";
  throw input_error(std::string("the file cannot be written: ") + std::strerror(code),
                    file.string(), fix);
}

[[noreturn]] void fail_to_link(const fs::path& file, int code) {
  if (code != EPERM && code != ENOSYS && code != EOPNOTSUPP) fail(file, code);
  throw input_error(
      std::string("the file system has no hard links, by which a file appears whole: ") +
          std::strerror(code),
      file.string(), "choose a folder on another file system");
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

// Makes a new name in `folder` durable. Some file systems cannot; that is no reason to fail.
void sync_folder(const fs::path& folder, int at = AT_FDCWD) {
  const Descriptor descriptor(
      openat(at, folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor) (void)fsync(descriptor.number());
}

constexpr int kSearch = O_PATH | O_DIRECTORY | O_CLOEXEC;

// A file that is there only as long as this object, or until it gets its final name. Where the file
// system can, it has no name at all: what is killed leaves nothing behind.
class Temporary {
 public:
  explicit Temporary(const fs::path& final_name) : Temporary(open_parent(final_name), final_name) {}
  Temporary(Descriptor folder, const fs::path& final_name)
      : folder_(std::move(folder)), shown_(final_name), final_name_(final_name.filename()) {
    if (access(kDescriptors, X_OK) == 0) {
      file_ = Descriptor(openat(folder_.number(), ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
    }
    if (file_) return;
    name_ = temporary_name();
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    file_ = Descriptor(openat(folder_.number(), name_.c_str(), kFlags, 0666));
    if (!file_) fail(shown_, errno);
  }
  ~Temporary() {
    if (!name_.empty()) unlinkat(folder_.number(), name_.c_str(), 0);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(std::string_view content) {
    write_all(file_.number(), content, shown_);
    sync(file_.number(), shown_);
  }

  // False: the name is taken.
  bool create() {
    if (link_to(final_name_)) {
      sync_folder(".", folder_.number());
      return true;
    }
    if (errno == EEXIST) return false;
    fail_to_link(shown_, errno);
  }

  void replace() {
    if (name_.empty()) {
      const std::string name = temporary_name();
      if (!link_to(name)) fail_to_link(shown_, errno);
      name_ = name;
    }
    if (renameat(folder_.number(), name_.c_str(), folder_.number(), final_name_.c_str()) != 0) {
      fail(shown_, errno);
    }
    name_.clear();
    sync_folder(".", folder_.number());
  }

 private:
  static Descriptor open_parent(const fs::path& file) {
    Descriptor folder(open(file.has_parent_path() ? file.parent_path().c_str() : ".", kSearch));
    if (!folder) fail(file, errno);
    return folder;
  }

  std::string temporary_name() const {
    static std::atomic<unsigned> counter{0};
    return fmt::format("{}.{}.{}.tmp", final_name_, getpid(), counter++);
  }

  bool link_to(const std::string& name) const {
    const int from = name_.empty() ? AT_FDCWD : folder_.number();
    const std::string self =
        name_.empty() ? fmt::format("{}/{}", kDescriptors, file_.number()) : name_;
    return linkat(from, self.c_str(), folder_.number(), name.c_str(),
                  name_.empty() ? AT_SYMLINK_FOLLOW : 0) == 0;
  }

  Descriptor folder_, file_;
  fs::path shown_;
  std::string final_name_, name_;  // name_: where it has a temporary one
};

void remove_tree(int folder, const char* name, const fs::path& shown) {
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return;
  const int code = errno;
  const int there = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (there < 0) fail(shown, errno == ENOTDIR ? code : errno);
  const auto close_it = [](DIR* entries) { closedir(entries); };
  const std::unique_ptr<DIR, decltype(close_it)> entries(fdopendir(there));
  while (const dirent* entry = readdir(entries.get())) {
    const std::string_view each = entry->d_name;
    if (each != "." && each != "..") remove_tree(there, entry->d_name, shown / each);
  }
  if (unlinkat(folder, name, AT_REMOVEDIR) != 0) fail(shown, errno);
}

}  // namespace

void replace_file(const fs::path& file, std::string_view content) {
  Temporary temporary(file);
  temporary.write(content);
  temporary.replace();
}

bool create_file(const fs::path& file, std::string_view content) {
  Temporary temporary(file);
  temporary.write(content);
  return temporary.create();
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
    fail_to_link(to, errno);
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
  throw input_error(
      "folder cannot be created: " + (code ? code.message() : std::string("a file is there")),
      part.string(), "choose another folder or fix its permissions");
}

Folder::Folder(fs::path path) : path_(std::move(path)) {
  paceline::make_folder(path_);
  descriptor_ = Descriptor(open(path_.c_str(), kSearch));
  if (!descriptor_) fail(path_, errno);
}

bool Folder::is_at_path() const {
  struct stat ours {
  }, there{};
  return fstat(descriptor_.number(), &ours) == 0 && stat(path_.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

fs::path Folder::find_path() const {
  std::error_code error;
  const fs::path found =
      fs::read_symlink(fmt::format("{}/{}", kDescriptors, descriptor_.number()), error);
  return fs::exists(found, error) ? found : fs::path();
}

// Part by part, which all kernels can.
Descriptor Folder::enter(const fs::path& folder) const {
  Descriptor at(openat(descriptor_.number(), ".", kSearch));
  fs::path shown = path_;
  for (const fs::path& part : folder) {
    shown /= part;
    if (part == "." || part == ".." || part.has_root_path()) fail(shown, EINVAL);
    const bool failed = mkdirat(at.number(), part.c_str(), 0777) != 0 && errno != EEXIST;
    if (failed) fail(shown, errno);
    Descriptor next(openat(at.number(), part.c_str(), kSearch | O_NOFOLLOW));
    if (!next) fail(shown, fs::is_symlink(shown) ? ELOOP : errno);
    at = std::move(next);
  }
  return at;
}

void Folder::make_folder(const fs::path& name) const {
  enter(name);
}

bool Folder::create_file(const fs::path& name, std::string_view content) const {
  Temporary temporary(enter(name.parent_path()), path_ / name);
  temporary.write(content);
  return temporary.create();
}

void Folder::replace_file(const fs::path& name, std::string_view content) const {
  Temporary temporary(enter(name.parent_path()), path_ / name);
  temporary.write(content);
  temporary.replace();
}

Descriptor Folder::open_new(const fs::path& name) const {
  const Descriptor folder = enter(name.parent_path());
  const std::string leaf = name.filename();
  if (fs::is_symlink(path_ / name)) fail(path_ / name, ELOOP);
  unlinkat(folder.number(), leaf.c_str(), 0);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  Descriptor file(openat(folder.number(), leaf.c_str(), kFlags, 0666));
  if (!file) fail(path_ / name, errno);
  return file;
}

Descriptor Folder::open_to_append(const fs::path& name) const {
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const Descriptor folder = enter(name.parent_path());
  Descriptor file(openat(folder.number(), name.filename().c_str(), kFlags, 0666));
  struct stat status {};
  if (!file || fstat(file.number(), &status) != 0) fail(path_ / name, errno);
  if (!S_ISREG(status.st_mode) || status.st_nlink > 1) fail(path_ / name, ELOOP);
  return file;
}

void Folder::remove(const fs::path& name) const {
  remove_tree(enter(name.parent_path()).number(), name.filename().c_str(), path_ / name);
}

namespace {

// Folders of TMPDIR may be seen by other hosts, whose locks are not always seen here.
std::string scratch_name(const std::string& prefix) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}-{}-", prefix, host.data());
}

fs::path scratch_parent() {
  std::error_code code;
  const fs::path parent = fs::temp_directory_path(code);
  return code ? "/tmp" : parent;
}

// Locks a folder of this user for as long as it is open. -1: another process holds it.
int lock_folder(const fs::path& folder) {
  const int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info {};
  if (lock >= 0 && fstat(lock, &info) == 0 && info.st_uid == geteuid() &&
      flock(lock, LOCK_EX | LOCK_NB) == 0) {
    return lock;
  }
  if (lock >= 0) close(lock);
  return -1;
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& prefix) {
  remove_left(prefix);
  // Has its name once it is locked.
  std::string name = (scratch_parent() / ("." + scratch_name(prefix) + "XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) {
    throw input_error(std::string("a temporary folder cannot be created: ") + std::strerror(errno),
                      name, "set TMPDIR to a folder with free space that can be written");
  }
  lock_ = lock_folder(name);
  path_ = fs::path(name).parent_path() / fs::path(name).filename().string().substr(1);
  if (rename(name.c_str(), path_.c_str()) != 0) path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

void ScratchFolder::remove_left(const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(scratch_parent(), ignored)) {
    if (!entry.path().filename().string().starts_with(scratch_name(prefix))) continue;
    const int lock = lock_folder(entry.path());
    if (lock < 0) continue;
    fs::remove_all(entry.path(), ignored);
    close(lock);
  }
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
    throw input_error("this is not a regular file", option_ + " " + file_.string(),
                      "give another name");
  }
  if (!is_ours_) {
    throw input_error("the file exists already", option_ + " " + file_.string(),
                      "a " + kind_ + " never replaces a file: give another name");
  }
  if (may_replace()) return;
  throw input_error("the file exists already and is no " + kind_, option_ + " " + file_.string(),
                    "give another name, or move it away");
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

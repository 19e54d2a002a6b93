#include "engine/input/prepare/staged_folder.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kLock[] = ".paceline-lock";

// Absolute, without a slash at the end.
fs::path normalize(const fs::path& out) {
  const fs::path whole = fs::absolute(out).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

constexpr std::size_t kBlock = std::size_t{1} << 16;

class Unpacker {
 public:
  Unpacker(const fs::path& archive, const fs::path& folder, std::uint64_t most_bytes, bool quiet)
      : archive_(archive),
        folder_(folder),
        most_bytes_(most_bytes),
        progress_("unpacking " + archive.filename().string(),
                  static_cast<double>(fs::file_size(archive)), PrepareProgress::Unit::bytes, quiet),
        reader_(archive_read_new(), archive_read_free),
        buffer_(kBlock) {
    archive_read_support_filter_all(reader_.get());
    archive_read_support_format_tar(reader_.get());
    archive_read_support_format_zip(reader_.get());
    if (archive_read_open_filename(reader_.get(), archive_.c_str(), kBlock) != ARCHIVE_OK) {
      throw damaged();
    }
  }

  void run() {
    while (true) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(reader_.get(), &entry);
      if (code == ARCHIVE_EOF) return;
      if (code < ARCHIVE_WARN) throw damaged();
      extract(entry);
      progress_.at(static_cast<double>(archive_filter_bytes(reader_.get(), -1)));
    }
  }

 private:
  Error damaged() const {
    const char* why = archive_error_string(reader_.get());
    return {ErrorKind::input, std::string("archive is damaged: ") + (why ? why : "unknown format"),
            archive_.string(), "fetch it again"};
  }
  Error refused(const std::string& what, const std::string& entry) const {
    return {ErrorKind::input, "archive " + what, archive_.string() + ", entry " + entry,
            "do not trust it; fetch it from its official place"};
  }

  fs::path target_path(const std::string& name) const {
    const fs::path path = fs::path(name).lexically_normal();
    if (name.empty() || name.find('\0') != std::string::npos || path.is_absolute() ||
        *path.begin() == "..") {
      throw refused("would write outside its folder", name);
    }
    return folder_ / path;
  }

  void extract(archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    const std::string name = raw ? raw : "";
    const fs::path place = target_path(name);
    const auto type = archive_entry_filetype(entry);
    if (archive_entry_hardlink(entry) || (type != AE_IFREG && type != AE_IFDIR)) {
      throw refused("holds a link or device", name);
    }
    if (type == AE_IFDIR) {
      make_folder(place);
      return;
    }
    make_folder(place.parent_path());
    const int file =
        open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0 && errno == EEXIST) throw refused("has a name twice", name);
    if (file < 0) fail(place);
    try {
      write_content(file, name, place);
    } catch (...) {
      close(file);
      throw;
    }
    if (close(file) != 0) fail(place);
  }

  void write_content(int file, const std::string& name, const fs::path& place) {
    while (true) {
      const la_ssize_t got = archive_read_data(reader_.get(), buffer_.data(), buffer_.size());
      if (got < 0) throw damaged();
      if (got == 0) return;
      bytes_ += static_cast<std::uint64_t>(got);
      if (bytes_ > most_bytes_) {
        throw refused("holds more than " + format_bytes(static_cast<double>(most_bytes_)), name);
      }
      for (la_ssize_t done = 0; done < got;) {
        const ssize_t n =
            ::write(file, buffer_.data() + done, static_cast<std::size_t>(got - done));
        if (n < 0 && errno != EINTR) fail(place);
        if (n > 0) done += n;
      }
    }
  }

  [[noreturn]] static void fail(const fs::path& file) {
    throw input_error(std::string("the file cannot be written: ") + std::strerror(errno),
                      file.string(), "free some space or choose another folder");
  }

  const fs::path &archive_, &folder_;
  std::uint64_t most_bytes_, bytes_ = 0;
  PrepareProgress progress_;
  std::unique_ptr<archive, decltype(&archive_read_free)> reader_;
  std::vector<char> buffer_;
};

}  // namespace

int lock_file(const fs::path& file, const fs::path& what) {
  const int descriptor = open_lock_file(file);
  if (descriptor < 0) {
    throw input_error(std::string("the folder cannot be written: ") + std::strerror(errno),
                      what.string(), "choose another folder or fix its permissions");
  }
  // On a file system without locks, the work goes on without one.
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(descriptor);
    throw input_error("another paceline is writing there", what.string(),
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
  throw input_error("too little space: " + format_bytes(static_cast<double>(bytes)) +
                        " are needed, " + format_bytes(static_cast<double>(space.available)) +
                        " are free",
                    folder.string(), "free some, or choose another folder");
}

StagedFolder::StagedFolder(const fs::path& out) : out_(normalize(out)), path_(out_) {
  path_ += ".partial";
  if (fs::exists(out_) && (!fs::is_directory(out_) || !fs::is_empty(out_))) {
    throw usage_error("the folder exists and is not empty; nothing is overwritten", out.string(),
                      "use --out with a new folder");
  }
  claim();
}

void StagedFolder::claim() {
  const bool is_there = fs::exists(path_) && !fs::is_empty(path_);
  if (fs::is_symlink(path_) || (is_there && !fs::exists(path_ / kLock))) {
    throw usage_error("the file was not written by paceline", path_.string(),
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
    throw input_error("the folder cannot be renamed: " + code.message(), out_.string(),
                      "choose another folder or fix its permissions");
  }
  path_.clear();
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

void unpack(const fs::path& archive, const fs::path& folder, std::uint64_t most_bytes, bool quiet) {
  Unpacker(archive, folder, most_bytes, quiet).run();
}

}  // namespace paceline

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/input/formats/formats.h"
#include "engine/input/formats/source.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kManifest[] = ".paceline-staged";  // "HASH path" a line
constexpr std::size_t kPart = std::size_t{1} << 20;

Error failed(const std::string& what, int code, const fs::path& where) {
  return {ErrorKind::input, what + ": " + std::strerror(code), where.string(),
          code == ENOSPC ? "free some space or stage elsewhere" : "give another --stage"};
}

// Closed, and by that unlocked, at the end.
class Lock {
 public:
  explicit Lock(const fs::path& file) : descriptor_(open_lock_file(file)) {
    if (descriptor_ < 0) throw failed("cannot be locked", errno, file);
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    if (errno == EWOULDBLOCK) {
      log::info("waiting for another process that stages the same data ({})", file.string());
      while (flock(descriptor_, LOCK_EX) != 0) {
        if (errno != EINTR) break;
      }
      return;
    }
    const int code = errno;
    close(descriptor_);
    throw failed("cannot be locked", code, file);
  }
  ~Lock() { close(descriptor_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

class Output {
 public:
  explicit Output(const fs::path& file)
      : file_(file),
        descriptor_(open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) throw failed("cannot be written", errno, file);
  }
  ~Output() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(const char* data, std::size_t count) {
    while (count > 0) {
      const ssize_t n = ::write(descriptor_, data, count);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw failed("cannot be written", errno, file_);
      data += n;
      count -= static_cast<std::size_t>(n);
    }
  }
  // On the disk, and out of the page cache, so that what is read back comes from there.
  void finish() {
    if (fsync(descriptor_) != 0) throw failed("cannot be written", errno, file_);
    (void)posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
    const int code = close(descriptor_) == 0 ? 0 : errno;
    descriptor_ = -1;
    if (code != 0) throw failed("cannot be written", code, file_);
  }

 private:
  const fs::path& file_;
  int descriptor_;
};

// Returns the hash of what was read.
std::string copy_hashed(const fs::path& from, const fs::path& to) {
  const RandomFile source(from);
  std::vector<char> part(kPart);
  Hash hash;
  Output output(to);
  for (std::uint64_t at = 0; at < source.size(); at += kPart) {
    const std::size_t count = std::min<std::uint64_t>(kPart, source.size() - at);
    source.read(at, count, part.data());
    hash.add(part.data(), count);
    output.write(part.data(), count);
  }
  output.finish();
  return hash.hex();
}

class Staging {
 public:
  Staging(const fs::path& folder, const fs::path& into)
      : folder_(folder), into_(into), files_(files_of_set(folder)) {
    Hash hash;
    for (const FolderFile& file : files_) {
      hash.add(fmt::format("{} {} {}\n", file.path.string(), file.size, file.changed));
      bytes_ += file.size;
    }
    name_ = fs::weakly_canonical(folder).filename().string() + "-" + hash.hex();
    if (files_.empty()) {
      throw input_error("the folder holds no data set to stage", folder.string(), "check --data");
    }
  }

  StagedData go(bool verify) {
    make_folder(into_);
    refuse_inside();
    const Lock lock(into_ / ("." + name_ + ".lock"));
    const fs::path target = into_ / name_;
    const bool there = fs::exists(target);
    if (there) {
      check(target, verify);
    } else {
      clear_leftovers();
      copy(target);
    }
    return {target, bytes_, !there};
  }

 private:
  void refuse_inside() const {
    const fs::path place = fs::canonical(into_), data = fs::canonical(folder_);
    const auto differ = std::mismatch(data.begin(), data.end(), place.begin(), place.end());
    if (differ.first != data.end()) return;
    throw usage_error("the data set would be staged into its own folder", into_.string(),
                      "give another --stage");
  }

  fs::path temporary() const { return into_ / ("." + name_ + ".tmp"); }

  void clear_leftovers() const {  // of a job that was killed: we hold the lock
    std::error_code code;
    fs::remove_all(temporary(), code);
    if (code) throw failed("cannot be cleared", code.value(), temporary());
  }

  void copy(const fs::path& target) const {
    const std::uint64_t free = fs::space(into_).available;
    if (free < bytes_) {
      throw input_error(fmt::format("the file system has {} free, but the data set needs {}",
                                    format_bytes(static_cast<double>(free)),
                                    format_bytes(static_cast<double>(bytes_))),
                        into_.string(), "free some space or stage elsewhere");
    }
    try {
      copy_files();
      if (rename(temporary().c_str(), target.c_str()) != 0) {
        throw failed("cannot be given its name", errno, target);
      }
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(temporary(), ignored);
      throw;
    }
  }

  void copy_files() const {
    std::string manifest;
    for (const FolderFile& file : files_) {
      const fs::path copy = temporary() / file.path;
      make_folder(copy.parent_path());
      const std::string hash = copy_hashed(folder_ / file.path, copy);
      if (hash_of_file(copy) != hash) {
        throw input_error("the copy differs from what was written", copy.string(),
                          "check this disk, or stage elsewhere");
      }
      manifest += hash + " " + file.path.string() + "\n";
    }
    replace_file(temporary() / kManifest, manifest);
  }

  void check(const fs::path& target, bool verify) const {
    const auto lines = split(read_text(target / kManifest), '\n');
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const fs::path copy = target / files_[i].path;
      std::error_code code;
      bool same = fs::file_size(copy, code) == files_[i].size && !code && i < lines.size();
      if (same && verify) same = lines[i] == hash_of_file(copy) + " " + files_[i].path.string();
      if (same) continue;
      throw input_error("the copy has changed since it was staged", copy.string(),
                        "remove " + target.string() + " and stage again");
    }
  }

  fs::path folder_, into_;
  std::vector<FolderFile> files_;
  std::uint64_t bytes_ = 0;
  std::string name_;
};

enum class Answer { resident, absent, unknown };

Answer ask(int descriptor, std::uint64_t offset) {
  char byte = 0;
  iovec place{&byte, 1};
  const ssize_t n = preadv2(descriptor, &place, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  if (n == 1) return Answer::resident;
  return n < 0 && errno == EAGAIN ? Answer::absent : Answer::unknown;
}

std::vector<fs::path> paths_of_set(const fs::path& folder) {
  if (fs::is_regular_file(folder)) return token_files(folder);
  std::vector<fs::path> paths = mnist_files(folder);
  if (!is_image_set(folder)) return paths.empty() ? token_files(folder) : paths;
  const auto take = [&paths](const std::vector<fs::path>& more) {
    paths.insert(paths.end(), more.begin(), more.end());
  };
  // Opening shards takes a look at each of their records.
  if (const fs::path tfds = find_tfds(folder); !tfds.empty()) {
    take(tfds_files(tfds));
    if (has_synthetic_mark(folder)) take({folder / kSyntheticMark});
    return paths;
  }
  const ImageSet set = open_image_set(folder);
  for (const auto& [name, source] : set.splits) take(source->files());
  take(set.description_files);
  return paths;
}

}  // namespace

StagedData stage_data(const fs::path& folder, const fs::path& into, bool verify) try {
  return Staging(folder, into).go(verify);
} catch (const fs::filesystem_error& error) {
  throw failed("cannot be staged", error.code().value(), error.path1());
}

std::optional<double> resident_share(const std::filesystem::path& folder) {
  constexpr std::uint64_t kPlaces = 256;
  const std::vector<FolderFile> files = files_of_set(folder);
  const std::uint64_t total = summed(files, &FolderFile::size);
  if (total == 0) return std::nullopt;
  std::uint64_t before = 0, asked = 0, resident = 0, next = 0;
  for (const FolderFile& file : files) {
    const std::uint64_t end = before + file.size;
    const int descriptor = next * total / kPlaces < end
                               ? open((folder / file.path).c_str(), O_RDONLY | O_CLOEXEC)
                               : -1;
    for (; next < kPlaces && next * total / kPlaces < end; ++next) {
      const Answer answer =
          descriptor < 0 ? Answer::unknown : ask(descriptor, next * total / kPlaces - before);
      asked += answer != Answer::unknown;
      resident += answer == Answer::resident;
    }
    if (descriptor >= 0) close(descriptor);
    before = end;
  }
  if (asked == 0) return std::nullopt;
  return static_cast<double>(resident) / static_cast<double>(asked);
}

std::vector<FolderFile> files_of_set(const fs::path& folder) try {
  std::vector<FolderFile> files;
  for (const fs::path& path : paths_of_set(folder)) {
    files.push_back({path.lexically_relative(folder), fs::file_size(path),
                     fs::last_write_time(path).time_since_epoch().count()});
  }
  std::ranges::sort(files, {}, &FolderFile::path);
  const auto is_same = [](const FolderFile& a, const FolderFile& b) { return a.path == b.path; };
  files.erase(std::unique(files.begin(), files.end(), is_same), files.end());
  return files;
} catch (const fs::filesystem_error& error) {
  throw input_error("the folder cannot be read: " + error.code().message(), error.path1().string(),
                    "check the path and its permissions");
}

}  // namespace paceline

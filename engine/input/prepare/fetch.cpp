#include "engine/input/prepare/fetch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/input/prepare/digest.h"
#include "engine/input/prepare/download.h"
#include "engine/input/prepare/progress.h"
#include "engine/input/prepare/shards.h"
#include "engine/input/prepare/staged_folder.h"
#include "engine/input/prepare/unpack.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kPartial[] = ".partial", kLock[] = "lock", kUnpacked[] = "unpacked",
               kShards[] = "shards";
const std::set<std::string> kLast = {"train", "dataset_info.json", "data_batch_1.bin"};

class Fetcher {
 public:
  Fetcher(const PublishedSet& set, const FetchOptions& options)
      : set_(set), options_(options), partial_(options.out / kPartial) {}
  ~Fetcher() {
    if (lock_ >= 0) close(lock_);
  }
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  std::string run() {
    make_folder(partial_);
    lock_ = lock_file(partial_ / kLock, options_.out);
    return set_.folder.empty() ? fetch_files() : fetch_archive();
  }

 private:
  // A file that is there already is left alone if it is the published one.
  bool is_there(const PublishedFile& file) const {
    const fs::path path = options_.out / file.name;
    if (!fs::exists(path)) return false;
    if (fs::is_regular_file(path) && fs::file_size(path) == file.bytes &&
        file_digest(path, file.algorithm) == file.digest) {
      return true;
    }
    throw Error(ErrorKind::input,
                "the file exists but differs from the published one; nothing is overwritten",
                path.string(), "move it away, or choose another --out");
  }

  std::string fetch_files() {
    std::vector<const PublishedFile*> missing;
    for (const PublishedFile& file : set_.files) {
      if (!is_there(file)) missing.push_back(&file);
    }
    std::uint64_t bytes = 0;
    for (const PublishedFile* file : missing) bytes += bytes_left(*file);
    check_space(options_.out, bytes);
    for (const PublishedFile* file : missing) get(*file);
    for (const PublishedFile* file : missing)
      give_name(partial_ / file->name, options_.out / file->name);
    clean();
    if (missing.empty()) return options_.out.string() + ": all files were there, checksums match";
    return fmt::format("{}: {}, checksums match", options_.out.string(),
                       counted(missing.size(), "file"));
  }

  std::string fetch_archive() {
    const PublishedFile& file = set_.files[0];
    for (const auto& entry : fs::directory_iterator(options_.out)) {
      if (entry.path().filename() == kPartial) continue;
      throw Error(ErrorKind::input, "the folder exists and is not empty; nothing is overwritten",
                  options_.out.string(), "see paceline data verify, or choose another --out");
    }
    const std::uint64_t copies = options_.tfrecord ? 2 : 1;
    check_space(options_.out, bytes_left(file) + copies * set_.unpacked_bytes);
    get(file);
    fs::remove_all(partial_ / kUnpacked);
    make_folder(partial_ / kUnpacked);
    // The checksum vouches for the archive; the limit only for a wrong number of ours.
    unpack(partial_ / file.name, partial_ / kUnpacked, 2 * set_.unpacked_bytes, options_.quiet);
    fs::path result = partial_ / kUnpacked / set_.folder;
    if (!fs::is_directory(result)) {
      throw Error(ErrorKind::input, "archive holds no folder " + set_.folder, file.name,
                  "the published file has changed; report it");
    }
    if (options_.tfrecord) result = to_shards(result);
    move_all(result);
    clean();
    return fmt::format("{}: whole; use it with --data {}", set_.name,
                       shell_quote(options_.out.string()));
  }

  fs::path to_shards(const fs::path& class_folders) const {
    const fs::path shards = partial_ / kShards;
    fs::remove_all(shards);
    make_folder(shards);
    write_shards(class_folders, shards, set_.name, "0.1.0", set_.about, options_.threads,
                 options_.quiet);
    return shards;
  }

  std::uint64_t bytes_left(const PublishedFile& file) const {
    std::error_code none;
    const auto have = fs::file_size(partial_ / file.name, none);
    return none || have > file.bytes ? file.bytes : file.bytes - have;
  }

  void get(const PublishedFile& file) const {
    const fs::path path = partial_ / file.name;
    const std::string url = make_url(file, options_);
    download(url, path, file.bytes, options_);
    std::string digest;
    {
      PrepareProgress progress("checking " + file.name, static_cast<double>(file.bytes),
                               PrepareProgress::Unit::bytes, options_.quiet);
      digest = file_digest(path, file.algorithm, [&](double done) { progress.at(done); });
    }
    if (digest == file.digest) return;
    fs::remove(path);
    throw Error(ErrorKind::input,
                fmt::format("the {} differs: {} instead of the published {}", file.algorithm,
                            digest, file.digest),
                url, "try again; if it still differs, the file at this URL has changed");
  }

  static void give_name(const fs::path& from, const fs::path& to) {
    std::error_code code;
    fs::rename(from, to, code);
    if (code) {
      throw Error(ErrorKind::input, "the file cannot be renamed: " + code.message(), to.string(),
                  "check the folder and its permissions");
    }
  }

  // What the readers know a set by comes last, so that they never see a part.
  void move_all(const fs::path& from) const {
    std::vector<fs::path> names, last;
    for (const auto& entry : fs::directory_iterator(from)) {
      const fs::path name = entry.path().filename();
      (kLast.count(name.string()) ? last : names).push_back(name);
    }
    names.insert(names.end(), last.begin(), last.end());
    for (const fs::path& name : names) give_name(from / name, options_.out / name);
  }

  // What is left of a set that is whole now. Another set's partial file stays.
  void clean() const {
    std::error_code ignored;
    for (const PublishedFile& file : set_.files) fs::remove(partial_ / file.name, ignored);
    fs::remove_all(partial_ / kUnpacked, ignored);
    fs::remove_all(partial_ / kShards, ignored);
    const auto others = std::distance(fs::directory_iterator(partial_), {});
    if (others <= 1) fs::remove_all(partial_, ignored);
  }

  const PublishedSet& set_;
  const FetchOptions& options_;
  fs::path partial_;
  int lock_ = -1;
};

}  // namespace

std::string fetch_set(const PublishedSet& set, const FetchOptions& options) {
  return Fetcher(set, options).run();
}

}  // namespace paceline

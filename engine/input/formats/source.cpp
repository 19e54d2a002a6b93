#include "engine/input/formats/source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/input/formats/formats.h"

namespace paceline {

namespace fs = std::filesystem;

std::string LostRecords::text() const {
  const std::string what = !count        ? "the rest of the shard is lost"
                           : *count == 1 ? "1 record is lost"
                                         : fmt::format("{} records are lost", *count);
  return fmt::format("{}: {} ({})", where, what, why);
}

std::int32_t SampleSource::label(std::size_t i) const {
  EncodedSample sample;
  read(i, sample);
  return sample.label;
}

const std::shared_ptr<const SampleSource>& ImageSet::split(const std::string& split_name) const {
  if (const auto found = splits.find(split_name); found != splits.end()) return found->second;
  if (const auto reason = absent.find(split_name); reason != absent.end()) {
    throw input_error(reason->second, "data set " + name,
                      "get the missing file, or the whole set again");
  }
  if (split_name == "test" && splits.contains("validation")) return splits.at("validation");
  const auto names = mapped(splits, [](const auto& known) { return known.first; });
  throw input_error("the data set has no split \"" + split_name + "\"", "data set " + name,
                    names.empty() ? "get the set again" : "it has: " + join(names, ", "));
}

std::string ImageSet::hash() const {
  Hash hash;
  for (const std::string& label : classes) hash.add(label + "\n");
  for (const auto& [split_name, source] : splits) {
    hash.add(split_name + " " + source->hash() + "\n");
  }
  return hash.hex();
}

namespace {

// What images may come in. `find` gives the folder that holds them, or nothing.
struct Format {
  const char* looked_for;
  fs::path (*find)(const fs::path& folder);
  ImageSet (*open)(const fs::path& found, const ReadOptions& options);
};

constexpr Format kFormats[] = {
    {"dataset_info.json (here or one folder below)", find_tfds, open_tfds},
    {"data_batch_1.bin", find_cifar10, open_cifar10},
    {"labels.csv", find_labels_csv, open_labels_csv},
    {"folders of .jpg or .png files, a folder a class, here or below train/", find_class_folders,
     open_class_folders}};

ImageSet open_detected(const fs::path& folder, const ReadOptions& options) {
  if (!fs::is_directory(folder)) {
    throw input_error("not a folder", folder.string(), "check --data");
  }
  std::vector<std::string> looked_for;
  for (const Format& format : kFormats) {
    if (const fs::path found = format.find(folder); !found.empty())
      return format.open(found, options);
    looked_for.emplace_back(format.looked_for);
  }
  looked_for.back().insert(0, "and ");
  throw input_error("the folder holds no data set of images", folder.string(),
                    "looked for " + join(looked_for, ", "));
}

Error unreadable(const std::string& name, int code) {
  return {ErrorKind::input, std::string("cannot be read: ") + std::strerror(code), name,
          "check the path, its permissions and the disk"};
}

}  // namespace

bool is_image_set(const fs::path& folder) try {
  return std::any_of(std::begin(kFormats), std::end(kFormats),
                     [&](const Format& format) { return !format.find(folder).empty(); });
} catch (const std::exception&) {
  return true;  // opening it will say what is wrong
}

ImageSet open_image_set(const fs::path& folder, const ReadOptions& options) try {
  ImageSet set = open_detected(folder, options);
  set.synthetic = has_synthetic_mark(folder);
  if (set.synthetic) set.description_files.push_back(folder / kSyntheticMark);
  return set;
} catch (const fs::filesystem_error& error) {
  throw input_error("the folder cannot be read: " + error.code().message(), error.path1().string(),
                    "check the path and its permissions");
}

RandomFile::RandomFile(const std::filesystem::path& file, std::size_t buffer_bytes)
    : name_(file.filename().string()), buffer_bytes_(buffer_bytes) {
  descriptor_ = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would block
  if (descriptor_ < 0) throw unreadable(file.string(), errno);
  struct stat status {};
  const int code = fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (code != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor_);
    if (code != 0) throw unreadable(file.string(), code);
    throw input_error("not a regular file", file.string(), "name a file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

RandomFile::RandomFile(std::string name, std::string content)
    : name_(std::move(name)), content_(std::move(content)), size_(content_.size()) {}

RandomFile::~RandomFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

RandomFile::RandomFile(RandomFile&& other) noexcept
    : name_(std::move(other.name_)),
      content_(std::move(other.content_)),
      size_(other.size_),
      buffer_bytes_(other.buffer_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

void RandomFile::read(std::uint64_t offset, std::size_t count, char* out) const {
  if (offset > size_ || count > size_ - offset) {
    throw internal_error("a read beyond the end of a file", name_);
  }
  if (descriptor_ < 0) {
    std::memcpy(out, content_.data() + offset, count);
    return;
  }
  while (count > 0) {
    const std::size_t part = buffer_bytes_ ? std::min(count, buffer_bytes_) : count;
    const ssize_t n = pread(descriptor_, out, part, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw unreadable(name_, errno);
    if (n == 0) {
      throw input_error(fmt::format("became shorter while in use, at byte {}", offset), name_,
                        "leave the files alone during a run");
    }
    out += n;
    offset += static_cast<std::uint64_t>(n);
    count -= static_cast<std::size_t>(n);
  }
}

bool is_web_page(std::string_view head) {
  const std::string_view text = trim(head.substr(0, 512));
  return text.starts_with("<!") || text.starts_with("<html") || text.starts_with("<HTML") ||
         text.starts_with("<?xml");
}

std::string guess_content(std::string_view head) {
  if (head.empty()) return "is empty";
  if (head.starts_with("version https://git-lfs")) {
    return "is a git-lfs pointer, not the file itself";
  }
  return is_web_page(head) ? "is a web page: the download failed" : "";
}

void mark_synthetic(const std::filesystem::path& folder) {
  replace_file(folder / kSyntheticMark,
               "The images of this folder were made by paceline data make. No result on them is "
               "one on the real data set; records of such runs say so.\n");
}

bool has_synthetic_mark(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / kSyntheticMark);
}

}  // namespace paceline

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/input/formats/formats.h"
#include "engine/input/formats/source.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostImageBytes = std::uint64_t{1} << 30;
constexpr std::array<const char*, 3> kSplitFolders = {"train", "test", "validation"};

class FileSource final : public SampleSource {
 public:
  FileSource(fs::path root, std::vector<LabelledFile> files, const ReadOptions& options)
      : root_(std::move(root)), files_(std::move(files)), options_(options) {}

  std::size_t samples() const override { return files_.size(); }
  std::int32_t label(std::size_t i) const override { return files_.at(i).label; }
  std::string where(std::size_t i) const override { return files_.at(i).file.string(); }

  void read(std::size_t i, EncodedSample& sample) const override {
    const LabelledFile& entry = files_.at(i);
    const RandomFile file(entry.file, options_.buffer_bytes);
    if (file.size() > kMostImageBytes) {
      throw input_error(
          "the file is too large for an image: " + format_bytes(static_cast<double>(file.size())),
          where(i), "take it out of the data set");
    }
    sample.bytes.resize(file.size());
    file.read(0, sample.bytes.size(), sample.bytes.data());
    sample.image = sample.bytes;
    sample.label = entry.label;
    sample.height = sample.width = 0;
  }

  std::string hash() const override {
    constexpr std::uint64_t kEnd = 4096;
    std::array<char, kEnd> bytes{};
    Hash hash;
    for (const LabelledFile& entry : files_) {
      const RandomFile file(entry.file);
      const std::uint64_t part = std::min(kEnd, file.size());
      hash.add(fmt::format("{} {} {}\n", entry.file.lexically_relative(root_).string(), entry.label,
                           file.size()));
      for (const std::uint64_t at : {std::uint64_t{0}, file.size() - part}) {
        file.read(at, part, bytes.data());
        hash.add(bytes.data(), part);
      }
    }
    return hash.hex();
  }

  std::vector<fs::path> files() const override { return mapped(files_, &LabelledFile::file); }

 private:
  fs::path root_;
  std::vector<LabelledFile> files_;
  ReadOptions options_;
};

bool is_image_name(const fs::path& file) {
  const std::string ending = to_lower(file.extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// A link to a folder that it lies in: no class of its own.
bool leads_back(const fs::directory_entry& entry) {
  if (!entry.is_symlink()) return false;
  const fs::path target = fs::canonical(entry.path());
  const fs::path place = fs::canonical(entry.path().parent_path());
  return std::mismatch(target.begin(), target.end(), place.begin(), place.end()).first ==
         target.end();
}

std::vector<fs::path> sorted_entries(const fs::path& folder, bool folders) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") || entry.is_directory() != folders) continue;
    if (folders ? !leads_back(entry) : is_image_name(entry.path())) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool holds_classes(const fs::path& folder) {
  if (!fs::is_directory(folder)) return false;
  const auto folders = sorted_entries(folder, true);
  return std::ranges::any_of(folders,
                             [](const fs::path& f) { return !sorted_entries(f, false).empty(); });
}

std::vector<LabelledFile> files_by_class(const fs::path& folder,
                                         const std::vector<std::string>& classes) {
  std::vector<LabelledFile> files;
  for (const fs::path& class_folder : sorted_entries(folder, true)) {
    const std::string name = class_folder.filename().string();
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      throw input_error("this is a class that train/ does not have", class_folder.string(),
                        "give every split the same class folders");
    }
    for (const fs::path& file : sorted_entries(class_folder, false)) {
      files.push_back({file, static_cast<std::int32_t>(found - classes.begin())});
    }
  }
  return files;
}

std::vector<std::string> class_names(const fs::path& folder) {
  return mapped(sorted_entries(folder, true),
                [](const fs::path& entry) { return entry.filename().string(); });
}

// Fields of one line; quotes as RFC 4180 has them, but no line breaks inside of them.
std::vector<std::string> split_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

class LabelsCsv {
 public:
  explicit LabelsCsv(const fs::path& folder)
      : folder_(folder), file_(folder / "labels.csv"), lines_(split(read_text(file_), '\n')) {
    std::string_view names = lines_[0];
    if (names.starts_with(kMark)) names.remove_prefix(kMark.size());
    const auto columns = split_fields(trim(names));
    path_ = column(columns, "path", true);
    label_ = column(columns, "label", true);
    class_ = column(columns, "class", false);
  }

  void read() {
    for (at_ = 1; at_ < lines_.size(); ++at_) {
      if (!trim(lines_[at_]).empty()) take(split_fields(trim(lines_[at_])));
    }
    if (rows_.empty()) throw bad("lists no images", "add lines");
  }

  // Names are sorted.
  std::vector<std::string> classes() const {
    if (!numbers_) return {names_.begin(), names_.end()};
    std::vector<std::string> classes;
    for (std::int64_t label = 0; label <= highest_; ++label) {
      const auto named = class_of_.find(label);
      classes.push_back(named == class_of_.end() ? std::to_string(label) : named->second);
    }
    return classes;
  }

  std::vector<LabelledFile> files(const std::vector<std::string>& classes) const {
    std::vector<LabelledFile> files;
    for (const auto& [file, label] : rows_) {
      const auto number =
          numbers_ ? *to_integer(label)
                   : std::lower_bound(classes.begin(), classes.end(), label) - classes.begin();
      files.push_back({file, static_cast<std::int32_t>(number)});
    }
    return files;
  }

  const fs::path& file() const { return file_; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::string_view kMark = "\xef\xbb\xbf";  // Excel's, of UTF-8

  Error bad(const std::string& what, const std::string& fix) const {
    return {ErrorKind::input, what, fmt::format("{}:{}", file_.string(), at_ + 1), fix};
  }

  std::size_t column(const std::vector<std::string>& columns, const char* name, bool needed) const {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
    if (!needed) return kNone;
    throw bad(fmt::format("has no column \"{}\"", name), "begin with a line path,label");
  }

  // A whole number of any length.
  static bool is_number(std::string_view label) {
    if (label.starts_with('-') || label.starts_with('+')) label.remove_prefix(1);
    return !label.empty() && label.find_first_not_of("0123456789") == std::string_view::npos;
  }

  void take(const std::vector<std::string>& fields) {
    if (fields.size() <= std::max(path_, label_)) throw bad("has too few columns", "complete it");
    if (fields[path_].find('\0') != std::string::npos) {
      throw bad("has a path with a zero byte", "save it as a plain text in UTF-8");
    }
    const fs::path path = fs::path(fields[path_]).lexically_normal();
    if (path.empty() || path.is_absolute() || *path.begin() == "..") {
      throw bad(fmt::format("path \"{}\" leads out of the folder", fields[path_]),
                "give paths that start at the folder");
    }
    const std::string& label = fields[label_];
    const auto number = to_integer(label);
    if (rows_.empty()) numbers_ = is_number(label);
    if (numbers_ != is_number(label)) {
      throw bad(fmt::format("label \"{}\" is a {}, and those before are {}", label,
                            numbers_ ? "name" : "number", numbers_ ? "numbers" : "names"),
                "give numbers from 0, or names, for all");
    }
    if (numbers_ &&
        (!number || *number < 0 || *number >= static_cast<std::int64_t>(kMostClasses))) {
      throw bad(fmt::format("label \"{}\" is out of range", label), "count labels from 0");
    }
    const auto [known, first] = label_of_.emplace(path.string(), label);
    if (!first && known->second != label) {
      throw bad(fmt::format("\"{}\" has label \"{}\", and \"{}\" before", fields[path_], label,
                            known->second),
                "keep one of them");
    }
    if (numbers_) {
      highest_ = std::max(highest_, *number);
      if (class_ < fields.size()) class_of_[*number] = fields[class_];
    }
    names_.insert(label);
    if (names_.size() > kMostClasses) throw bad("has too many classes", "check column label");
    rows_.emplace_back(folder_ / path, label);
  }

  fs::path folder_, file_;
  std::vector<std::string> lines_;
  std::size_t at_ = 0, path_, label_, class_;
  bool numbers_ = true;
  std::int64_t highest_ = 0;
  std::map<std::int64_t, std::string> class_of_;
  std::set<std::string> names_;
  std::map<std::string, std::string> label_of_;  // by path
  std::vector<std::pair<fs::path, std::string>> rows_;
};

}  // namespace

std::shared_ptr<const SampleSource> make_file_source(const fs::path& root,
                                                     std::vector<LabelledFile> files,
                                                     const ReadOptions& options) {
  return std::make_shared<FileSource>(root, std::move(files), options);
}

void split_by_name(ImageSet& set, const fs::path& root, const std::vector<LabelledFile>& files,
                   const ReadOptions& options) {
  std::vector<std::vector<LabelledFile>> classes(set.classes.size());
  for (const LabelledFile& entry : files) {
    classes[static_cast<std::size_t>(entry.label)].push_back(entry);
  }
  std::vector<LabelledFile> train, test;
  for (auto& of_class : classes) {
    std::ranges::sort(of_class, {}, &LabelledFile::file);
    const std::size_t first_of_test = (of_class.size() * 4 + 4) / 5;
    for (std::size_t i = 0; i < of_class.size(); ++i) {
      (i < first_of_test ? train : test).push_back(of_class[i]);
    }
  }
  set.splits["train"] = make_file_source(root, std::move(train), options);
  if (!test.empty()) set.splits["test"] = make_file_source(root, std::move(test), options);
}

fs::path find_class_folders(const fs::path& folder) {
  return holds_classes(folder / "train") || holds_classes(folder) ? folder : fs::path();
}

ImageSet open_class_folders(const fs::path& folder, const ReadOptions& options) {
  ImageSet set;
  set.name = fs::absolute(folder / ".").parent_path().filename().string();
  set.format = "class folders";
  if (!holds_classes(folder / "train")) {
    set.classes = class_names(folder);
    split_by_name(set, folder, files_by_class(folder, set.classes), options);
    return set;
  }
  set.classes = class_names(folder / "train");
  for (const char* name : kSplitFolders) {
    if (!holds_classes(folder / name)) continue;
    set.splits[name] =
        make_file_source(folder, files_by_class(folder / name, set.classes), options);
  }
  if (set.splits.size() == 1) {
    split_by_name(set, folder, files_by_class(folder / "train", set.classes), options);
  }
  return set;
}

fs::path find_labels_csv(const fs::path& folder) {
  return fs::exists(folder / "labels.csv") ? folder : fs::path();
}

ImageSet open_labels_csv(const fs::path& folder, const ReadOptions& options) {
  LabelsCsv csv(folder);
  csv.read();
  ImageSet set;
  set.name = fs::absolute(folder / ".").parent_path().filename().string();
  set.format = "labels.csv";
  set.classes = csv.classes();
  set.description_files.push_back(csv.file());
  split_by_name(set, folder, csv.files(set.classes), options);
  return set;
}

}  // namespace paceline

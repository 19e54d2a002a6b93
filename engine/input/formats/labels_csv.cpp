#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/input/formats/image_files.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMostClasses = 1 << 20;

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

  // Of any length.
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
    if (numbers_ && (!number || *number < 0 || *number >= kMostClasses)) {
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
    if (names_.size() > static_cast<std::size_t>(kMostClasses))
      throw bad("has too many classes", "check column label");
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

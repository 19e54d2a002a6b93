#include "engine/input/formats/image_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/input/formats/random_file.h"

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
      throw Error(
          ErrorKind::input,
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

  std::vector<fs::path> files() const override {
    std::vector<fs::path> paths;
    for (const LabelledFile& entry : files_) paths.push_back(entry.file);
    return paths;
  }

 private:
  fs::path root_;
  std::vector<LabelledFile> files_;
  ReadOptions options_;
};

bool is_image_name(const fs::path& file) {
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
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
  return std::any_of(folders.begin(), folders.end(),
                     [](const fs::path& f) { return !sorted_entries(f, false).empty(); });
}

std::vector<LabelledFile> files_by_class(const fs::path& folder,
                                         const std::vector<std::string>& classes) {
  std::vector<LabelledFile> files;
  for (const fs::path& class_folder : sorted_entries(folder, true)) {
    const std::string name = class_folder.filename().string();
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      throw Error(ErrorKind::input, "this is a class that train/ does not have",
                  class_folder.string(), "give every split the same class folders");
    }
    for (const fs::path& file : sorted_entries(class_folder, false)) {
      files.push_back({file, static_cast<std::int32_t>(found - classes.begin())});
    }
  }
  return files;
}

std::vector<std::string> class_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : sorted_entries(folder, true)) {
    names.push_back(entry.filename().string());
  }
  return names;
}

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
    std::sort(of_class.begin(), of_class.end(),
              [](const LabelledFile& a, const LabelledFile& b) { return a.file < b.file; });
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

}  // namespace paceline

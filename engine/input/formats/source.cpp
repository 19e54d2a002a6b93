#include "engine/input/formats/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/input/formats/cifar10.h"
#include "engine/input/formats/image_files.h"
#include "engine/input/formats/synthetic_mark.h"
#include "engine/input/formats/tfds.h"

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
    throw Error(ErrorKind::input, reason->second, "data set " + name,
                "get the missing file, or the whole set again");
  }
  if (split_name == "test" && splits.contains("validation")) return splits.at("validation");
  std::vector<std::string> names;
  for (const auto& [known, source] : splits) names.push_back(known);
  throw Error(ErrorKind::input, "the data set has no split \"" + split_name + "\"",
              "data set " + name,
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
    throw Error(ErrorKind::input, "not a folder", folder.string(), "check --data");
  }
  std::vector<std::string> looked_for;
  for (const Format& format : kFormats) {
    if (const fs::path found = format.find(folder); !found.empty())
      return format.open(found, options);
    looked_for.emplace_back(format.looked_for);
  }
  looked_for.back().insert(0, "and ");
  throw Error(ErrorKind::input, "the folder holds no data set of images", folder.string(),
              "looked for " + join(looked_for, ", "));
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
  throw Error(ErrorKind::input, "the folder cannot be read: " + error.code().message(),
              error.path1().string(), "check the path and its permissions");
}

}  // namespace paceline

#include "engine/input/source.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/input/cifar10.h"
#include "engine/input/image_files.h"
#include "engine/input/synthetic_mark.h"
#include "engine/input/tfds.h"

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
  std::vector<std::string> names;
  for (const auto& [known, source] : splits) names.push_back(known);
  throw Error(ErrorKind::input, "there is no split \"" + split_name + "\"", "data set " + name,
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

ImageSet open_detected(const fs::path& folder, const ReadOptions& options) {
  if (!fs::is_directory(folder)) {
    throw Error(ErrorKind::input, "is not a folder", folder.string(), "check --data");
  }
  if (const fs::path found = find_tfds(folder); !found.empty()) return open_tfds(found, options);
  if (const fs::path found = find_cifar10(folder); !found.empty()) {
    return open_cifar10(found, options);
  }
  if (fs::exists(folder / "labels.csv")) return open_labels_csv(folder, options);
  if (has_class_folders(folder)) return open_class_folders(folder, options);
  throw Error(
      ErrorKind::input, "holds no data set of images", folder.string(),
      "looked for dataset_info.json (here or one folder below), data_batch_1.bin, labels.csv, "
      "and folders of .jpg or .png files, a folder a class, here or below train/");
}

}  // namespace

bool is_image_set(const fs::path& folder) try {
  return !find_tfds(folder).empty() || !find_cifar10(folder).empty() ||
         fs::exists(folder / "labels.csv") || has_class_folders(folder);
} catch (const std::exception&) {
  return true;  // opening it will say what is wrong
}

ImageSet open_image_set(const fs::path& folder, const ReadOptions& options) try {
  ImageSet set = open_detected(folder, options);
  set.synthetic = has_synthetic_mark(folder);
  if (set.synthetic) set.description_files.push_back(folder / kSyntheticMark);
  return set;
} catch (const fs::filesystem_error& error) {
  throw Error(ErrorKind::input, "cannot be read: " + error.code().message(), error.path1().string(),
              "check the path and its permissions");
}

}  // namespace paceline

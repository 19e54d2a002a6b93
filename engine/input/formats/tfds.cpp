#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/input/formats/formats.h"
#include "engine/input/formats/tfrecord.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kInfoFile[] = "dataset_info.json", kFeaturesFile[] = "features.json",
               kLabelsSuffix[] = ".labels.txt";
constexpr std::size_t kMostShards = 99999;

struct Shard {
  TfRecordFile file;
  std::size_t first;  // of its records, in the split
};

class TfdsSource final : public SampleSource {
 public:
  TfdsSource(const std::vector<fs::path>& files, const std::vector<std::size_t>& lengths,
             ExampleKeys keys, std::size_t classes, const ReadOptions& options)
      : files_(files), keys_(std::move(keys)), classes_(classes) {
    for (std::size_t s = 0; s < files.size(); ++s) {
      using OnDamage = TfRecordFile::OnDamage;
      const auto on_damage = options.skip_damaged ? OnDamage::keep_what_precedes : OnDamage::refuse;
      shards_.push_back({TfRecordFile(files[s], options.buffer_bytes, on_damage), samples_});
      check_count(files[s], lengths[s], options.skip_damaged);
      samples_ += shards_.back().file.records();
    }
  }

  std::size_t samples() const override { return samples_; }

  void read(std::size_t i, EncodedSample& sample) const override {
    const Shard& shard = shard_at(i);
    shard.file.read(i - shard.first, sample.bytes);
    take_example(sample, keys_, classes_, [&] { return where(i); });
  }

  std::string where(std::size_t i) const override {
    const Shard& shard = shard_at(i);
    return shard.file.where(i - shard.first);
  }

  std::string hash() const override {
    Hash hash;
    for (const Shard& shard : shards_) hash.add(to_hex(shard.file.hash()));
    return hash.hex();
  }

  std::vector<LostRecords> lost() const override { return lost_; }

  std::vector<fs::path> files() const override { return files_; }

 private:
  // Checks the number of records of the last shard so far.
  void check_count(const fs::path& path, std::size_t declared, bool skip) {
    const TfRecordFile& file = shards_.back().file;
    const std::size_t found = file.records();
    if (found == declared && file.damage().empty()) return;
    const std::string differs =
        fmt::format("holds {} records, and {} declares {}", found, kInfoFile, declared);
    if (!skip || found > declared) {
      throw input_error(differs, path.filename().string(), "get the file again");
    }
    LostRecords lost{file.where_end(), file.damage().empty() ? differs : file.damage(), {}};
    if (found < declared) lost.count = declared - found;
    lost_.push_back(std::move(lost));
  }

  const Shard& shard_at(std::size_t i) const {
    return *std::prev(std::ranges::upper_bound(shards_, i, {}, &Shard::first));
  }

  std::vector<fs::path> files_;
  ExampleKeys keys_;
  std::size_t classes_, samples_ = 0;
  std::vector<Shard> shards_;
  std::vector<LostRecords> lost_;
};

// Samples [first, first + count) of another source.
class PartOfSource final : public SampleSource {
 public:
  PartOfSource(std::shared_ptr<const SampleSource> whole, std::size_t first, std::size_t count)
      : whole_(std::move(whole)), first_(first), count_(count) {}

  std::size_t samples() const override { return count_; }
  void read(std::size_t i, EncodedSample& sample) const override {
    whole_->read(first_ + i, sample);
  }
  std::string where(std::size_t i) const override { return whole_->where(first_ + i); }
  std::int32_t label(std::size_t i) const override { return whole_->label(first_ + i); }
  std::string hash() const override {
    return hash_hex(fmt::format("{} {} {}", whole_->hash(), first_, count_));
  }
  // What is lost of the whole is said once.
  std::vector<LostRecords> lost() const override {
    return first_ == 0 ? whole_->lost() : std::vector<LostRecords>();
  }
  std::vector<fs::path> files() const override { return whole_->files(); }

 private:
  std::shared_ptr<const SampleSource> whole_;
  std::size_t first_, count_;
};

// Prepared sets lie in a random order, so the last samples are of all classes.
void split_off_test(ImageSet& set) {
  if (set.splits.size() != 1 || !set.splits.contains("train") || !set.absent.empty()) return;
  const auto whole = set.splits.at("train");
  const std::size_t all = whole->samples(), test = all / 5;
  if (test == 0) return;
  set.splits["train"] = std::make_shared<PartOfSource>(whole, 0, all - test);
  set.splits["test"] = std::make_shared<PartOfSource>(whole, all - test, test);
}

// A descendant of a JSON value by its keys (of an array: the index), or null.
const Json* child(const Json& value, std::initializer_list<std::string> keys) {
  Json::json_pointer place;
  for (const std::string& key : keys) place /= key;
  return value.contains(place) ? &value.at(place) : nullptr;
}

// Protocol Buffers' JSON writes 64-bit numbers as texts; old writers wrote numbers.
std::optional<std::size_t> read_count(const Json* value) {
  std::optional<std::int64_t> number;
  if (value && value->is_string()) number = to_integer(value->get<std::string>());
  if (value && value->is_number_integer()) number = value->get<std::int64_t>();
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

std::string text_at(const Json* value, const std::string& otherwise = "") {
  return value && value->is_string() ? value->get<std::string>() : otherwise;
}

class TfdsFolder {
 public:
  TfdsFolder(const fs::path& folder, const ReadOptions& options)
      : folder_(folder), options_(options), info_(read_json(folder / kInfoFile)) {}

  ImageSet open() {
    read([this](const std::string& split, const std::vector<fs::path>& files,
                const std::vector<std::size_t>& lengths) {
      set_.splits[split] =
          std::make_shared<TfdsSource>(files, lengths, keys_, set_.classes.size(), options_);
    });
    split_off_test(set_);
    return std::move(set_);
  }

  std::vector<fs::path> files() {
    std::vector<fs::path> all;
    read([&all](const std::string&, const std::vector<fs::path>& files,
                const std::vector<std::size_t>&) {
      all.insert(all.end(), files.begin(), files.end());
    });
    all.insert(all.end(), set_.description_files.begin(), set_.description_files.end());
    return all;
  }

 private:
  // Calls take(name, shards, their declared records) of each split that is there.
  template <typename Take>
  void read(Take take) {
    set_.name = text_at(child(info_.value(), {"name"}));
    if (set_.name.empty()) throw bad("names no data set", "");
    set_.format = "TFDS folder";
    find_keys();
    set_.description_files.push_back(folder_ / kInfoFile);
    find_classes();
    const Json* splits = child(info_.value(), {"splits"});
    if (!splits || !splits->is_array() || splits->empty())
      throw bad("declares no splits", "/splits");
    for (std::size_t i = 0; i < splits->size(); ++i) {
      read_split((*splits)[i], fmt::format("/splits/{}", i), take);
    }
  }

  Error bad(const std::string& what, const std::string& path) const {
    return {ErrorKind::input, what, info_.where(path), "prepare the data set again"};
  }

  void find_keys() {
    const Json& info = info_.value();
    const Json* image = child(info, {"supervisedKeys", "input"});
    const Json* label = child(info, {"supervisedKeys", "output"});
    if (!image) image = child(info, {"supervisedKeys", "tuple", "items", "0", "featureKey"});
    if (!label) label = child(info, {"supervisedKeys", "tuple", "items", "1", "featureKey"});
    keys_.image = text_at(image, keys_.image);
    keys_.label = text_at(label, keys_.label);
  }

  void find_classes() {
    const fs::path names = folder_ / (keys_.label + kLabelsSuffix);
    if (fs::exists(names)) {
      set_.description_files.push_back(names);
      for (const std::string& line : split(read_text(names), '\n')) {
        if (!trim(line).empty()) set_.classes.emplace_back(trim(line));
      }
      if (!set_.classes.empty()) return;
    }
    const fs::path features = folder_ / kFeaturesFile;
    if (!fs::exists(features)) {
      throw input_error(
          "the set names no classes",
          folder_.string() + ": neither " + names.filename().string() + " nor " + kFeaturesFile,
          "prepare the data set again");
    }
    set_.description_files.push_back(features);
    const JsonDocument document = read_json(features);
    auto classes =
        read_count(child(document.value(), {"content", keys_.label, "content", "num_classes"}));
    if (!classes) {
      classes = read_count(child(
          document.value(), {"featuresDict", "features", keys_.label, "classLabel", "numClasses"}));
    }
    if (!classes || *classes == 0 || *classes > kMostClasses) {
      throw input_error("the file does not say how many classes \"" + keys_.label + "\" has",
                        features.string(), "prepare the data set again");
    }
    for (std::size_t c = 0; c < *classes; ++c) set_.classes.push_back(std::to_string(c));
  }

  std::vector<std::size_t> read_lengths(const Json& split, const std::string& path) const {
    const Json* lengths = child(split, {"shardLengths"});
    if (!lengths || !lengths->is_array() || lengths->empty() || lengths->size() > kMostShards) {
      throw bad("declares no shardLengths", path);
    }
    std::vector<std::size_t> counts;
    for (const Json& length : *lengths) {
      const auto count = read_count(&length);
      if (!count) throw bad("has a shardLength that is not a number", path + "/shardLengths");
      counts.push_back(*count);
    }
    return counts;
  }

  fs::path shard_file(const Json& split, std::size_t shard, std::size_t shards) const {
    std::string file = text_at(child(split, {"filepathTemplate"}));
    if (file.empty()) file = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";
    const std::string index = fmt::format("{:05}", shard), count = fmt::format("{:05}", shards);
    const std::pair<const char*, std::string> variables[] = {
        {"{DATASET}", set_.name},
        {"{SPLIT}", text_at(child(split, {"name"}))},
        {"{FILEFORMAT}", text_at(child(info_.value(), {"fileFormat"}), "tfrecord")},
        {"{SHARD_X_OF_Y}", index + "-of-" + count},
        {"{SHARD_INDEX}", index},
        {"{NUM_SHARDS}", count}};
    for (const auto& [name, value] : variables) {
      if (const auto at = file.find(name); at != std::string::npos) {
        file.replace(at, std::string_view(name).size(), value);
      }
    }
    if (fs::path(file).has_parent_path()) throw bad("names a shard in another folder", "/splits");
    return folder_ / file;
  }

  template <typename Take>
  void read_split(const Json& split, const std::string& path, Take take) {
    const std::string name = text_at(child(split, {"name"}));
    if (name.empty()) throw bad("has a split without a name", path);
    const std::vector<std::size_t> lengths = read_lengths(split, path);
    std::vector<fs::path> files;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      fs::path file = shard_file(split, s, lengths.size());
      for (const char* ending : {"", ".gz"}) {
        if (fs::exists(file.string() + ending)) {
          files.push_back(file.string() + ending);
          break;
        }
      }
      if (files.size() == s + 1) continue;
      set_.absent[name] = fmt::format("shard {} is missing: split {} is declared to have {} shards",
                                      file.filename().string(), name, lengths.size());
      return;
    }
    take(name, files, lengths);
  }

  fs::path folder_;
  ReadOptions options_;
  JsonDocument info_;
  ExampleKeys keys_;
  ImageSet set_;
};

}  // namespace

fs::path find_tfds(const fs::path& folder) {
  if (fs::exists(folder / kInfoFile)) return folder;
  std::vector<std::string> versions;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && fs::exists(entry.path() / kInfoFile)) {
      versions.push_back(entry.path().filename().string());
    }
  }
  std::sort(versions.begin(), versions.end());
  if (versions.size() > 1) {
    throw input_error("the folder holds several prepared data sets: " + join(versions, ", "),
                      folder.string(), "name one of them");
  }
  return versions.empty() ? fs::path() : folder / versions[0];
}

ImageSet open_tfds(const fs::path& folder, const ReadOptions& options) {
  return TfdsFolder(folder, options).open();
}

std::vector<fs::path> tfds_files(const fs::path& folder) {
  return TfdsFolder(folder, {}).files();
}

}  // namespace paceline

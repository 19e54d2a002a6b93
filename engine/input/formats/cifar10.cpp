#include <fmt/format.h>

#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/input/formats/formats.h"
#include "engine/input/formats/source.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr int kSide = 32;
constexpr std::size_t kPlane = kSide * kSide, kRecord = 1 + 3 * kPlane;
constexpr std::size_t kClasses = 10, kBatches = 5;
constexpr char kNames[] = "batches.meta.txt", kTest[] = "test_batch.bin";

class Cifar10Source final : public SampleSource {
 public:
  Cifar10Source(const std::vector<fs::path>& paths, const ReadOptions& options) : paths_(paths) {
    for (const fs::path& path : paths) {
      RandomFile file(path, options.buffer_bytes);
      if (file.size() == 0 || file.size() % kRecord != 0) {
        throw input_error(
            fmt::format(
                "the file is cut short or not a CIFAR-10 batch: {} bytes are not a multiple of {}",
                file.size(), kRecord),
            path.string(), "get the file again");
      }
      const std::size_t records = file.size() / kRecord;
      batches_.push_back({std::move(file), samples_});
      samples_ += records;
    }
  }

  std::size_t samples() const override { return samples_; }

  void read(std::size_t i, EncodedSample& sample) const override {
    const Batch& batch = make_batch(i);
    sample.bytes.resize(kRecord + 3 * kPlane);
    char* const record = sample.bytes.data();
    batch.file.read((i - batch.first) * kRecord, kRecord, record);
    const auto label = static_cast<unsigned char>(record[0]);
    if (label >= kClasses) {
      throw input_error(fmt::format("label {} is out of range: there are 10 classes", label),
                        where(i), "get the file again");
    }
    char* pixel = record + kRecord;
    for (std::size_t p = 0; p < kPlane; ++p) {
      for (std::size_t c = 0; c < 3; ++c) *pixel++ = record[1 + c * kPlane + p];
    }
    sample.image = std::string_view(sample.bytes).substr(kRecord);
    sample.label = label;
    sample.height = sample.width = kSide;
  }

  std::string where(std::size_t i) const override {
    const Batch& batch = make_batch(i);
    return fmt::format("{}, record {} at byte {}", batch.file.name(), i - batch.first,
                       (i - batch.first) * kRecord);
  }

  std::string hash() const override {
    Hash hash;
    std::string bytes;
    for (const Batch& batch : batches_) {
      bytes.resize(batch.file.size());
      batch.file.read(0, bytes.size(), bytes.data());
      hash.add(bytes);
    }
    return hash.hex();
  }

  std::vector<fs::path> files() const override { return paths_; }

 private:
  struct Batch {
    RandomFile file;
    std::size_t first;  // of its records
  };

  const Batch& make_batch(std::size_t i) const {
    std::size_t b = batches_.size() - 1;
    while (b > 0 && batches_[b].first > i) --b;
    return batches_[b];
  }

  std::vector<fs::path> paths_;
  std::vector<Batch> batches_;
  std::size_t samples_ = 0;
};

std::string batch_name(std::size_t k) {
  return fmt::format("data_batch_{}.bin", k);
}

struct TrainingBatches {
  std::vector<fs::path> files;
  std::vector<std::string> missing;
};

// The set has five of them, real or made: fewer are a part of it, and nobody knows what more are.
TrainingBatches training_batches(const fs::path& folder) {
  TrainingBatches batches;
  std::set<std::string> known;
  for (std::size_t k = 1; k <= kBatches; ++k) {
    const std::string name = batch_name(k);
    known.insert(name);
    if (fs::exists(folder / name)) {
      batches.files.push_back(folder / name);
    } else {
      batches.missing.push_back(name);
    }
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("data_batch_") || !name.ends_with(".bin") || known.contains(name)) {
      continue;
    }
    throw input_error(fmt::format("not one of CIFAR-10's {} batches", kBatches),
                      entry.path().string(), "move it out of the folder");
  }
  return batches;
}

}  // namespace

fs::path find_cifar10(const fs::path& folder) {
  for (const fs::path& place : {folder, folder / "cifar-10-batches-bin"}) {
    for (std::size_t k = 1; k <= kBatches; ++k) {
      if (fs::exists(place / batch_name(k))) return place;
    }
    if (fs::exists(place / kTest)) return place;
  }
  return {};
}

ImageSet open_cifar10(const fs::path& folder, const ReadOptions& options) {
  ImageSet set;
  set.name = "cifar10";
  set.format = "CIFAR-10 binary";
  if (fs::exists(folder / kNames)) {
    set.description_files.push_back(folder / kNames);
    for (const std::string& line : split(read_text(folder / kNames), '\n')) {
      if (!trim(line).empty()) set.classes.emplace_back(trim(line));
    }
    if (set.classes.size() != kClasses) {
      throw input_error(fmt::format("the file names {} classes, not 10", set.classes.size()),
                        (folder / kNames).string(), "get the data set again");
    }
  } else {
    set.classes = {"airplane", "automobile", "bird",  "cat",  "deer",
                   "dog",      "frog",       "horse", "ship", "truck"};
  }
  const TrainingBatches train = training_batches(folder);
  if (!train.missing.empty()) {
    set.absent["train"] =
        join(train.missing, ", ") + (train.missing.size() == 1 ? " is missing" : " are missing");
  } else {
    set.splits["train"] = std::make_shared<Cifar10Source>(train.files, options);
  }
  if (!fs::exists(folder / kTest)) {
    set.absent["test"] = std::string(kTest) + " is missing";
  } else {
    set.splits["test"] =
        std::make_shared<Cifar10Source>(std::vector<fs::path>{folder / kTest}, options);
  }
  return set;
}

}  // namespace paceline

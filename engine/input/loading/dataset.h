// Labelled samples of one size: bytes in memory, or images that a store reads and decodes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/input/cache/image_store.h"

namespace paceline {

struct Dataset {
  std::string name;  // "mnist train"
  int height = 0, width = 0, channels = 0, classes = 0;
  std::size_t samples = 0;
  // Height x width x channels each; empty with a store. Synthetic sets may hold fewer than samples
  // and go through them again and again.
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
  bool synthetic = false;
  std::shared_ptr<ImageStore> store;  // null: samples are in memory
  DType image_type = DType::u8;       // of a fetched sample; f32 from a store only

  // Of sample i, among the images in memory.
  std::size_t place_of(std::size_t i) const { return i % labels.size(); }
  bool has_all_in_memory() const { return labels.size() == samples; }

  std::size_t sample_bytes() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels) * size_of(image_type);
  }
};

// Fetches samples for one thread.
class SampleFetcher {
 public:
  explicit SampleFetcher(const Dataset& dataset);  // outlives the fetcher

  // Sample i into `out`, sample_bytes() of it; returns its label. Throws as ImageStore::fetch().
  std::int32_t fetch(std::size_t i, std::uint8_t* out);
  // Sample i will be fetched soon.
  void expect(std::size_t i) const;
  // Of the fetches since the last call.
  InputCounts take_counts() { return worker_ ? std::exchange(worker_->counts, {}) : InputCounts{}; }

 private:
  const Dataset& dataset_;
  std::unique_ptr<ImageStore::Worker> worker_;  // with a store
};

struct DatasetPair {
  Dataset train, test;
  std::string hash;  // of the files' bytes; "synthetic" where there are none
};

// The four IDX files, .gz or not, below `folder`. Throws input with the file: missing, damaged,
// counts of images and labels differ, sides differ, labels out of range.
DatasetPair load_mnist(const std::filesystem::path& folder);
// The hash alone, without reading the samples.
std::string mnist_hash(const std::filesystem::path& folder);
// Those of the four that are there.
std::vector<std::filesystem::path> mnist_files(const std::filesystem::path& folder);

// The splits of an image set, decoded and resized to height x width as they are needed. `name` of a
// set in errors is its own. With a cache of their own where this process is the node's only one;
// else the caller gives them one, before the first fetch. Throws input where a split is missing or
// holds other classes.
DatasetPair load_images(const ImageSet& set, const std::string& train_split,
                        const std::string& test_split, ImageStore::Size size,
                        const InputOptions& options);
// What both sets, with stores, may keep in `bytes` of memory.
CacheArea::Size cache_size(const DatasetPair& pair, const InputOptions& options, std::size_t bytes);
// Both keep their samples in `area`. Throws usage where not one image fits.
void keep_in(DatasetPair& pair, const std::shared_ptr<CacheArea>& area);
// Both keep them in this process's part of the node's budget. Throws as CacheArea and keep_in().
void keep_apart(DatasetPair& pair, const InputOptions& options);
// CIFAR-10's binary files, in memory.
DatasetPair load_cifar10(const std::filesystem::path& folder);
// As the loaders above have it, without reading images; of a damaged set that of what is readable.
std::string image_set_hash(const std::filesystem::path& folder);

// Random images and labels of this shape, from the seed; as many distinct ones as fit into 64 MiB.
DatasetPair synthetic_images(int height, int width, int channels, int classes, std::size_t train,
                             std::size_t test, std::uint64_t seed);

// Keeps the first `limit` samples (0: all). Throws usage if there are fewer.
void limit_samples(Dataset& dataset, std::size_t limit);

// Where a data set of this name lies: `given` (from --data) if not empty, else $PACELINE_DATA/NAME,
// ./data/NAME, and data/NAME beside the installation or the sources. Throws input naming them all,
// and `fix`.
std::filesystem::path find_data_folder(const std::string& name, const std::filesystem::path& given,
                                       const std::string& fix = "give its folder by --data");

}  // namespace paceline

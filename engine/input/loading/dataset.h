// Labelled samples of one size: bytes in memory, or encoded images that a store reads and decodes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/input/cache/image_store.h"

namespace paceline {

struct Dataset {
  std::string name = {};  // "mnist train"
  int height = 0, width = 0, channels = 0, classes = 0;
  std::size_t samples = 0;
  // Height x width x channels each. Empty with a store. Synthetic sets may have fewer images than
  // samples and repeat them.
  std::vector<std::uint8_t> images = {};
  std::vector<std::int32_t> labels = {};
  bool synthetic = false;
  std::shared_ptr<ImageStore> store = {};  // null: samples are in memory
  DType image_type = DType::u8;            // of a fetched sample; f32 only with a store

  // The index of sample i among the images in memory.
  std::size_t stored_index(std::size_t i) const { return i % labels.size(); }
  bool has_all_in_memory() const { return labels.size() == samples; }

  std::size_t sample_bytes() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels) * size_of(image_type);
  }
};

// Fetches samples on one thread.
class SampleFetcher {
 public:
  explicit SampleFetcher(const Dataset& dataset);  // outlives the fetcher

  // Writes sample i, sample_bytes() long, to `out`, and returns its label. Throws as
  // ImageStore::fetch().
  std::int32_t fetch(std::size_t i, std::uint8_t* out);
  // Announces that sample i will be fetched soon.
  void expect(std::size_t i) const;
  // The counts of all fetches since the last call.
  InputCounts take_counts() { return worker_ ? std::exchange(worker_->counts, {}) : InputCounts{}; }

 private:
  const Dataset& dataset_;
  std::unique_ptr<ImageStore::Worker> worker_;  // with a store
};

struct DatasetPair {
  Dataset train, test;
  std::string hash;  // of the files' bytes; "synthetic" without files
};

// Loads the four IDX files (.gz or plain) of `folder`, or Keras' mnist.npz if there are none.
// Throws input naming the file: missing, damaged, different counts of images and labels, different
// image sizes, labels out of range.
DatasetPair load_mnist(const std::filesystem::path& folder);
// Only the hash, without reading the samples.
std::string mnist_hash(const std::filesystem::path& folder);
// Those of the four files that exist, or mnist.npz.
std::vector<std::filesystem::path> mnist_files(const std::filesystem::path& folder);

// Splits of an image set, decoded and resized to height x width on demand. If this process is the
// only one of its node, they have a cache; else set one before the first fetch. Throws input if a
// split is missing or has other classes.
DatasetPair load_images(const ImageSet& set, const std::string& train_split,
                        const std::string& test_split, ImageStore::Size size,
                        const InputOptions& options);
// The size of a cache for both sets (with stores) in `bytes` of memory.
CacheRegion::Size cache_size(const DatasetPair& pair, const InputOptions& options,
                             std::size_t bytes);
// Caches the samples of both sets in `area`. Throws usage if not even one image fits.
void keep_in(DatasetPair& pair, const std::shared_ptr<CacheRegion>& area);
// Caches them in this process's share of the node's budget. Throws as CacheRegion and keep_in().
void keep_apart(DatasetPair& pair, const InputOptions& options);
// CIFAR-10's binary files, loaded into memory.
DatasetPair load_cifar10(const std::filesystem::path& folder);
// The same hash as from the loaders above, without reading images. For a damaged set, covers the
// readable part.
std::string image_set_hash(const std::filesystem::path& folder);

// Tokens from files: llm.c's .bin (a header of 256 32-bit numbers, the first three 20240520, 1 and
// the number of tokens, then 16-bit tokens, all little-endian:
// github.com/karpathy/llm.c, dev/data/data_common.py), or .txt, each byte of which is a token.
// Names with "train" are trained on, with "val" or "test" tested with, in the order of names; .bin
// goes before .txt. A sample is `context` + 1 tokens, the last of which begins the next sample.
// Throws input naming the file: missing, damaged, too short, a token that is not below
// `vocabulary`.
DatasetPair load_tokens(const std::filesystem::path& folder, int context, int vocabulary);
// Those files; empty if there are none.
std::vector<std::filesystem::path> token_files(const std::filesystem::path& folder);
// Of their names and bytes.
std::string tokens_hash(const std::filesystem::path& folder);
// Random tokens. As many distinct samples as fit in 64 MiB.
DatasetPair synthetic_tokens(int context, int vocabulary, std::size_t train, std::size_t test,
                             std::uint64_t seed);

// Random images and labels of this shape, from the seed. As many distinct ones as fit in 64 MiB.
DatasetPair synthetic_images(int height, int width, int channels, int classes, std::size_t train,
                             std::size_t test, std::uint64_t seed);

// Keeps the first `limit` samples (0: all). Throws usage if there are fewer.
void limit_samples(Dataset& dataset, std::size_t limit);

// The data set at a place: NAME in it, or the folder, or the file of tokens. Empty: none.
std::optional<std::filesystem::path> find_data_set(const std::string& name,
                                                   const std::filesystem::path& place);
// Finds it at `given` (--data), else at $PACELINE_DATA, ./data/NAME, and data/NAME next to the
// installation or the sources. Throws input listing these, with `fix`.
std::filesystem::path find_data_folder(const std::string& name, const std::filesystem::path& given,
                                       const std::string& fix = "give its folder by --data");

// Copies a data set to fast node-local storage, once for all ranks and jobs of the node.

struct StagedData {
  std::filesystem::path folder;  // of the copy
  std::uint64_t bytes = 0;
  bool copied = false;  // false: a copy existed already
};

// Creates into/NAME-HASH. HASH covers names, sizes and times of the files, so that a changed set
// gets a new copy. Other processes wait for a lock and then use the copy. Every file is read back
// and compared by hash. An existing copy is compared by hash if `verify` is set (once per node is
// enough), else by sizes. A copy is made under a temporary name and renamed when complete.
// Leftovers of killed jobs are removed. The empty lock file remains.
//
// Throws input: too little space (with the required size), a copy that reads back differently, a
// copy that was modified.
StagedData stage_data(const std::filesystem::path& folder, const std::filesystem::path& into,
                      bool verify);

// Whether files are in memory already, i.e. whether the first epoch is cold or warm.

// The share of evenly sampled positions in the files of `folder` that are in the page cache. Empty
// if the file system does not report it, or without files. Reads only cached pages. Call it before
// anything else reads the files.
std::optional<double> resident_share(const std::filesystem::path& folder);

// Lists the files of a data set.

struct FolderFile {
  std::filesystem::path path;  // relative to the folder
  std::uint64_t size = 0;
  std::int64_t changed = 0;  // modification time, in the file system's unit
};

// All files that belong to the data set in a folder (MNIST or an image set), i.e. those that
// loading reads. Sorted by path. Empty if there is no set. Throws input.
std::vector<FolderFile> files_of_set(const std::filesystem::path& folder);

}  // namespace paceline

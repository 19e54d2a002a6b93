#include "engine/input/loading/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/random.h"
#include "engine/core/text.h"
#include "engine/input/formats/formats.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::array<const char*, 4> kMnistFiles = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte"};
constexpr int kMnistClasses = 10;
constexpr std::size_t kSyntheticBytes = 64U << 20;

constexpr char kNpzFile[] = "mnist.npz";  // as Keras caches it

fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {".gz", ""}) {
    const fs::path file = folder / (name + ending);
    if (fs::exists(file)) return file;
  }
  throw input_error("MNIST file " + name + "[.gz] is missing", folder.string(),
                    "use --data with the folder of the four files, or of mnist.npz");
}

// An array, and where it is from.
struct NamedArray {
  IdxArray array;
  std::string where;
};

Dataset make_split(const std::string& name, NamedArray images, const NamedArray& labels) {
  if (images.array.extents.size() != 3) {
    throw input_error("the file holds no images (rank 3 is expected)", images.where,
                      "check whether it was renamed");
  }
  const std::vector<std::uint32_t>& extents = images.array.extents;
  if (labels.array.extents.size() != 1 || labels.array.extents[0] != extents[0]) {
    throw input_error(fmt::format("{} images but {} labels", extents[0], labels.array.extents[0]),
                      images.where + ", " + fs::path(labels.where).filename().string(),
                      "take both from one distribution");
  }
  if (images.array.elements.empty()) {
    throw input_error("the file holds no samples", images.where, "get the file again");
  }
  Dataset set{.name = name,
              .height = static_cast<int>(extents[1]),
              .width = static_cast<int>(extents[2]),
              .channels = 1,
              .classes = kMnistClasses,
              .samples = extents[0],
              .images = std::move(images.array.elements)};
  set.labels.assign(labels.array.elements.begin(), labels.array.elements.end());
  const auto wrong =
      std::ranges::find_if(set.labels, [](std::int32_t label) { return label >= kMnistClasses; });
  if (wrong != set.labels.end()) {
    throw input_error(
        fmt::format("label {} of sample {} is not a digit", *wrong, wrong - set.labels.begin()),
        labels.where, "get the file again");
  }
  return set;
}

// `read` is called in the order of names: images and labels to train on, and to test with.
template <typename Read>
DatasetPair read_splits(const std::array<const char*, 4>& names, Read read) {
  DatasetPair pair;
  NamedArray images = read(names[0]);
  pair.train = make_split("mnist train", std::move(images), read(names[1]));
  images = read(names[2]);
  pair.test = make_split("mnist test", std::move(images), read(names[3]));
  return pair;
}

DatasetPair read_idx_files(const fs::path& folder) {
  const auto read = [&](const char* name) {
    const fs::path file = find_file(folder, name);
    return NamedArray{read_idx(file), file.string()};
  };
  return read_splits(kMnistFiles, read);
}

DatasetPair read_npz(const fs::path& file) {
  const NpzFile npz(file);
  return read_splits({"x_train", "y_train", "x_test", "y_test"}, [&](const char* name) {
    return NamedArray{npz.array(name), npz.where(name)};
  });
}

// Bytes of images, or of tokens.
Dataset random_split(const std::string& name, const Dataset& like, std::size_t samples,
                     std::uint64_t seed, std::uint32_t index, bool tokens = false) {
  Dataset set = like;
  set.name = name;
  set.samples = samples;
  set.synthetic = true;
  RandomSequence random(seed, Stream::synthetic, index);
  const std::size_t distinct = std::min(samples, kSyntheticBytes / set.sample_bytes() + 1);
  set.images.resize(distinct * set.sample_bytes());
  for (std::size_t i = 0; tokens && i < set.images.size(); i += 2) {
    const std::uint32_t token = random.below(static_cast<std::uint32_t>(set.classes));
    set.images[i] = static_cast<std::uint8_t>(token);
    set.images[i + 1] = static_cast<std::uint8_t>(token >> 8);
  }
  if (!tokens) {
    std::ranges::generate(set.images,
                          [&] { return static_cast<std::uint8_t>(random.next() >> 24); });
  }
  set.labels.resize(distinct);
  std::ranges::generate(set.labels, [&] {
    return static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(set.classes)));
  });
  return set;
}

Dataset described(const ImageSet& set, const std::string& split, ImageStore::Size size) {
  Dataset data{.name = set.name + " " + split,
               .height = size.height,
               .width = size.width,
               .channels = size.channels,
               .classes = static_cast<int>(set.classes.size()),
               .samples = set.split(split)->samples()};
  if (data.samples == 0) {
    throw input_error("split " + split + " holds no samples", "data set " + set.name,
                      "get the data set again");
  }
  return data;
}

Dataset in_memory(const ImageSet& set, const std::string& split) {
  constexpr int kSide = 32;
  Dataset data = described(set, split, {kSide, kSide, 3});
  const SampleSource& source = *set.split(split);
  EncodedSample sample;
  for (std::size_t i = 0; i < data.samples; ++i) {
    source.read(i, sample);
    data.images.insert(data.images.end(), sample.image.begin(), sample.image.end());
    data.labels.push_back(sample.label);
  }
  return data;
}

}  // namespace

DatasetPair load_mnist(const fs::path& folder) {
  const std::vector<fs::path> files = mnist_files(folder);
  const bool npz = !files.empty() && files[0].filename() == kNpzFile;
  DatasetPair pair = npz ? read_npz(files[0]) : read_idx_files(folder);
  if (pair.train.height != pair.test.height || pair.train.width != pair.test.width) {
    throw input_error(
        fmt::format("training images have {} x {} pixels, but test images {} x {}",
                    pair.train.height, pair.train.width, pair.test.height, pair.test.width),
        folder.string(), "take all files from one distribution");
  }
  pair.hash = mnist_hash(folder);
  return pair;
}

std::string mnist_hash(const fs::path& folder) {
  Hash hash;
  std::vector<fs::path> files = mnist_files(folder);
  if (files.empty() || files[0].filename() != kNpzFile) {
    files.clear();
    for (const char* name : kMnistFiles) files.push_back(find_file(folder, name));
  }
  for (const fs::path& file : files) hash.add(read_text(file));
  return hash.hex();
}

std::vector<fs::path> mnist_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* name : kMnistFiles) {
    for (const char* ending : {".gz", ""}) {
      const fs::path file = folder / (std::string(name) + ending);
      if (!fs::is_regular_file(file)) continue;
      files.push_back(file);
      break;
    }
  }
  if (files.empty() && fs::is_regular_file(folder / kNpzFile)) files.push_back(folder / kNpzFile);
  return files;
}

DatasetPair synthetic_images(int height, int width, int channels, int classes, std::size_t train,
                             std::size_t test, std::uint64_t seed) {
  Dataset like{.height = height, .width = width, .channels = channels, .classes = classes};
  return {random_split("synthetic train", like, train, seed, 0),
          random_split("synthetic test", like, test, seed, 1), "synthetic"};
}

DatasetPair synthetic_tokens(int context, int vocabulary, std::size_t train, std::size_t test,
                             std::uint64_t seed) {
  Dataset like{.height = context + 1, .width = 1, .channels = 2, .classes = vocabulary};
  return {random_split("synthetic train", like, train, seed, 0, true),
          random_split("synthetic test", like, test, seed, 1, true), "synthetic"};
}

void limit_samples(Dataset& set, std::size_t limit) {
  if (limit == 0) return;
  if (limit > set.samples) {
    throw usage_error(
        fmt::format("the limit is {} samples, but {} has only {}", limit, set.name, set.samples),
        "", "lower the limit");
  }
  set.samples = limit;
  if (set.store) {
    set.store->limit(limit);
    return;
  }
  const std::size_t kept = std::min(limit, set.labels.size());
  set.images.resize(kept * set.sample_bytes());
  set.labels.resize(kept);
}

std::optional<fs::path> find_data_set(const std::string& name, const fs::path& place) {
  if (fs::is_directory(place / name)) return place / name;
  const bool is_set = !token_files(place).empty() || !mnist_files(place).empty() ||
                      (fs::is_directory(place) && is_image_set(place));
  return is_set ? std::optional(place) : std::nullopt;
}

fs::path find_data_folder(const std::string& name, const fs::path& given, const std::string& fix) {
  if (!given.empty()) {
    const auto place = find_data_set(name, given);
    if (place) return *place;
    if (fs::is_directory(given)) return given;  // opening it will say what is wrong
    throw input_error("neither a folder nor a file of text", given.string(), "check --data");
  }
  std::vector<fs::path> places;
  if (const char* root = std::getenv("PACELINE_DATA")) {
    if (const auto place = find_data_set(name, root)) return *place;
    places.push_back(fs::path(root) / name);
  }
  places.push_back(fs::path("data") / name);
  const fs::path program = program_file();
  if (!program.empty()) places.push_back(program.parent_path() / "../share/paceline/data" / name);
  places.push_back(fs::path(PACELINE_SOURCE_DATA) / name);
  std::vector<std::string> tried;
  for (const fs::path& place : places) {
    if (fs::is_directory(place)) return place;
    tried.push_back(place.string());
  }
  throw input_error("data set " + name + " was not found, looked in " + join(tried, ", "), "", fix);
}

DatasetPair load_images(const ImageSet& set, const std::string& train_split,
                        const std::string& test_split, ImageStore::Size size,
                        const InputOptions& options) {
  const auto load = [&](const std::string& split) {
    Dataset data = described(set, split, size);
    data.store = std::make_shared<ImageStore>(set.split(split), size, options);
    data.image_type = options.type;
    return data;
  };
  DatasetPair pair{load(train_split), load(test_split), set.hash()};
  if (options.cache != CacheKind::off && options.tasks_of_node == 1) keep_apart(pair, options);
  return pair;
}

CacheRegion::Size cache_size(const DatasetPair& pair, const InputOptions& options,
                             std::size_t bytes) {
  CacheRegion::Size size;
  std::size_t all = 0;
  for (const Dataset* data : {&pair.train, &pair.test}) {
    size.samples.push_back(data->samples);
    all += data->samples * data->store->image_bytes();
  }
  size.bytes = options.cache == CacheKind::decoded ? std::min(bytes, all) : bytes;
  return size;
}

void keep_in(DatasetPair& pair, const std::shared_ptr<CacheRegion>& area) {
  pair.train.store->keep_in(area, 0);
  pair.test.store->keep_in(area, 1);
}

void keep_apart(DatasetPair& pair, const InputOptions& options) {
  const std::size_t bytes = options.cache_bytes / static_cast<std::size_t>(options.tasks_of_node);
  keep_in(pair, std::make_shared<CacheRegion>(cache_size(pair, options, bytes),
                                              CacheRegion::Reach::process, options.cache_folder));
}

DatasetPair load_cifar10(const std::filesystem::path& folder) {
  const std::filesystem::path found = find_cifar10(folder);
  if (found.empty()) {
    throw input_error("the folder has no data_batch_1.bin", folder.string(),
                      "use --data with the folder of CIFAR-10's binary version");
  }
  const ImageSet set = open_cifar10(found, {});
  return {in_memory(set, "train"), in_memory(set, "test"), set.hash()};
}

std::string image_set_hash(const std::filesystem::path& folder) {
  return open_image_set(folder, {.skip_damaged = true}).hash();
}

}  // namespace paceline

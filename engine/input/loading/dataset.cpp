#include "engine/input/loading/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/program_file.h"
#include "engine/core/random.h"
#include "engine/core/text.h"
#include "engine/input/formats/idx.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::array<const char*, 4> kMnistFiles = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte"};
constexpr int kMnistClasses = 10;
constexpr std::size_t kSyntheticBytes = 64U << 20;

fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {".gz", ""}) {
    const fs::path file = folder / (name + ending);
    if (fs::exists(file)) return file;
  }
  throw Error(ErrorKind::input, "MNIST file " + name + "[.gz] is missing", folder.string(),
              "use --data with the folder of the four files");
}

Dataset read_split(const fs::path& folder, const std::string& name, const char* images_file,
                   const char* labels_file) {
  const fs::path images_path = find_file(folder, images_file);
  const fs::path labels_path = find_file(folder, labels_file);
  IdxArray images = read_idx(images_path), labels = read_idx(labels_path);
  if (images.extents.size() != 3) {
    throw Error(ErrorKind::input, "the file holds no images (rank 3 is expected)",
                images_path.string(), "check whether it was renamed");
  }
  if (labels.extents.size() != 1 || labels.extents[0] != images.extents[0]) {
    throw Error(ErrorKind::input,
                fmt::format("{} images but {} labels", images.extents[0], labels.extents[0]),
                images_path.string() + ", " + labels_path.filename().string(),
                "take both files from one distribution");
  }
  if (images.elements.empty()) {
    throw Error(ErrorKind::input, "the file holds no samples", images_path.string(),
                "get the file again");
  }
  Dataset set;
  set.name = name;
  set.samples = images.extents[0];
  set.height = static_cast<int>(images.extents[1]);
  set.width = static_cast<int>(images.extents[2]);
  set.channels = 1;
  set.classes = kMnistClasses;
  set.images = std::move(images.elements);
  set.labels.assign(labels.elements.begin(), labels.elements.end());
  const auto wrong = std::find_if(set.labels.begin(), set.labels.end(),
                                  [](std::int32_t label) { return label >= kMnistClasses; });
  if (wrong != set.labels.end()) {
    throw Error(
        ErrorKind::input,
        fmt::format("label {} of sample {} is not a digit", *wrong, wrong - set.labels.begin()),
        labels_path.string(), "get the file again");
  }
  return set;
}

Dataset random_split(const std::string& name, const Dataset& like, std::size_t samples,
                     std::uint64_t seed, std::uint32_t index) {
  Dataset set = like;
  set.name = name;
  set.samples = samples;
  set.synthetic = true;
  RandomSequence random(seed, Stream::synthetic, index);
  const std::size_t distinct = std::min(samples, kSyntheticBytes / set.sample_bytes() + 1);
  set.images.resize(distinct * set.sample_bytes());
  std::generate(set.images.begin(), set.images.end(),
                [&] { return static_cast<std::uint8_t>(random.next() >> 24); });
  set.labels.resize(distinct);
  std::generate(set.labels.begin(), set.labels.end(), [&] {
    return static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(set.classes)));
  });
  return set;
}

}  // namespace

DatasetPair load_mnist(const fs::path& folder) {
  DatasetPair pair;
  pair.train = read_split(folder, "mnist train", kMnistFiles[0], kMnistFiles[1]);
  pair.test = read_split(folder, "mnist test", kMnistFiles[2], kMnistFiles[3]);
  if (pair.train.height != pair.test.height || pair.train.width != pair.test.width) {
    throw Error(ErrorKind::input,
                fmt::format("training images have {} x {} pixels, but test images {} x {}",
                            pair.train.height, pair.train.width, pair.test.height, pair.test.width),
                folder.string(), "take all four files from one distribution");
  }
  pair.hash = mnist_hash(folder);
  return pair;
}

std::string mnist_hash(const fs::path& folder) {
  Hash hash;
  for (const char* name : kMnistFiles) hash.add(read_text(find_file(folder, name)));
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
  return files;
}

DatasetPair synthetic_images(int height, int width, int channels, int classes, std::size_t train,
                             std::size_t test, std::uint64_t seed) {
  Dataset like;
  like.height = height;
  like.width = width;
  like.channels = channels;
  like.classes = classes;
  return {random_split("synthetic train", like, train, seed, 0),
          random_split("synthetic test", like, test, seed, 1), "synthetic"};
}

void limit_samples(Dataset& set, std::size_t limit) {
  if (limit == 0) return;
  if (limit > set.samples) {
    throw Error(
        ErrorKind::usage,
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

fs::path find_data_folder(const std::string& name, const fs::path& given, const std::string& fix) {
  if (!given.empty()) {
    if (fs::is_directory(given)) return given;
    throw Error(ErrorKind::input, "not a folder", given.string(), "check --data");
  }
  std::vector<fs::path> places;
  if (const char* root = std::getenv("PACELINE_DATA")) places.push_back(fs::path(root) / name);
  places.push_back(fs::path("data") / name);
  const fs::path program = program_file();
  if (!program.empty()) places.push_back(program.parent_path() / "../share/paceline/data" / name);
  places.push_back(fs::path(PACELINE_SOURCE_DATA) / name);
  std::vector<std::string> tried;
  for (const fs::path& place : places) {
    if (fs::is_directory(place)) return place;
    tried.push_back(place.string());
  }
  throw Error(ErrorKind::input,
              "data set " + name + " was not found, looked in " + join(tried, ", "), "", fix);
}

}  // namespace paceline

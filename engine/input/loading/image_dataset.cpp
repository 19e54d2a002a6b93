#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/input/formats/cifar10.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

namespace {

Dataset described(const ImageSet& set, const std::string& split, ImageStore::Size size) {
  Dataset data;
  data.name = set.name + " " + split;
  data.height = size.height;
  data.width = size.width;
  data.channels = size.channels;
  data.classes = static_cast<int>(set.classes.size());
  data.samples = set.split(split)->samples();
  if (data.samples == 0) {
    throw Error(ErrorKind::input, "split " + split + " holds no samples", "data set " + set.name,
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
    throw Error(ErrorKind::input, "the folder has no data_batch_1.bin", folder.string(),
                "use --data with the folder of CIFAR-10's binary version");
  }
  const ImageSet set = open_cifar10(found, {});
  return {in_memory(set, "train"), in_memory(set, "test"), set.hash()};
}

std::string image_set_hash(const std::filesystem::path& folder) {
  return open_image_set(folder, {.skip_damaged = true}).hash();
}

}  // namespace paceline

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/input/cifar10.h"
#include "engine/input/dataset.h"

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
  const auto memory = std::make_shared<MemoryBudget>(options.cache_bytes);
  std::shared_ptr<NamelessFile> file;
  if (options.cache != CacheKind::off && !options.cache_folder.empty()) {
    file = std::make_shared<NamelessFile>(options.cache_folder);
  }
  const auto load = [&](const std::string& split) {
    Dataset data = described(set, split, size);
    data.store = std::make_shared<ImageStore>(set.split(split), size, options, memory, file);
    data.image_type = options.type;
    return data;
  };
  return {load(train_split), load(test_split), set.hash()};
}

DatasetPair load_cifar10(const std::filesystem::path& folder) {
  const std::filesystem::path found = find_cifar10(folder);
  if (found.empty()) {
    throw Error(ErrorKind::input, "holds no data_batch_1.bin", folder.string(),
                "give the folder of CIFAR-10's binary version by --data");
  }
  const ImageSet set = open_cifar10(found, {});
  return {in_memory(set, "train"), in_memory(set, "test"), set.hash()};
}

std::string image_set_hash(const std::filesystem::path& folder) {
  return open_image_set(folder).hash();
}

}  // namespace paceline

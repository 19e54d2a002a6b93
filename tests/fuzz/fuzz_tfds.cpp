// A folder that TensorFlow Datasets prepared, all of it untrusted: descriptions and one shard.
#include "tests/fuzz/image_set.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  folder.fill({"dataset_info.json", "features.json", "label.labels.txt",
               "pets-train.tfrecord-00000-of-00001"},
              paceline::split_path(data, size));
  paceline::read_image_set(folder.path());
  return 0;
}

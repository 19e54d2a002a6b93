// CIFAR-10's binary files from an untrusted place: names of classes and two batches, of which the
// first stands for all five of the training.
#include "tests/fuzz/image_set.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  auto parts = paceline::split_path(data, size);
  if (parts.size() > 1) parts.insert(parts.begin() + 1, 4, parts[1]);
  folder.fill({"batches.meta.txt", "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
               "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"},
              parts);
  paceline::read_image_set(folder.path());
  return 0;
}

// CIFAR-10's binary files from an untrusted place: names of classes and two batches.
#include "tests/fuzz/image_set.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  folder.fill({"batches.meta.txt", "data_batch_1.bin", "test_batch.bin"},
              paceline::parts_of(data, size));
  paceline::read_image_set(folder.path());
  return 0;
}
